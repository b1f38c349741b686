"""SEMANTICS: the window, fixed, derived from ρ, and adaptive."""

import numpy as np
import pytest

from model import Adaptive
from strategies import append_both, assert_same_index, index_pair, update_both


def reach(window, rho, td_error, length=40, **rules):
    """How many predecessors an update of the last transition of an episode raises above zero."""
    index, model = index_pair(
        length, eps=0.0, eta=0.0, rho=rho, window=window, decay_on_insert=False, **rules
    )
    for i in range(length):
        append_both(index, model, [i == 0], priority=[0.0])
    update_both(index, model, [length - 1], [td_error])
    assert_same_index(index, model)
    raised = index.priority(np.arange(length)) > 0.0
    assert raised[length - raised.sum() :].all()
    return int(raised.sum()) - 1


@pytest.mark.parametrize("window", [0, 1, 5, 20, 39])
def test_a_fixed_window_reaches_exactly_that_far(window):
    assert reach(window, 0.9, 1.0) == window


@pytest.mark.parametrize(("rho", "expected"), [(0.4, 5), (0.65, 10), (0.8, 20)])
def test_the_derived_window_is_the_papers(rho, expected):
    assert reach(None, rho, 1.0) == expected


@pytest.mark.parametrize("rho", [0.0, 0.01, 0.1, 0.3, 0.85])
def test_the_derived_window_for_other_rho(rho):
    expected = 0 if rho == 0.0 else int(np.floor(np.log(0.01) / np.log(rho)))
    assert reach(None, rho, 1.0) == expected


def test_a_window_longer_than_the_episode_stops_at_its_start():
    assert reach(1000, 0.9, 1.0, length=7) == 6


@pytest.mark.parametrize(("td_error", "expected"), [(0.01, 0), (0.3, 1), (1.0, 3), (8.0, 6), (1e6, 12)])
def test_the_adaptive_window_grows_with_the_td_error_up_to_its_limit(td_error, expected):
    # ρ = 0.5, floor 0.1: 1.0 reaches 0.5, 0.25, 0.125 and no further.
    assert reach(Adaptive(floor=0.1, limit=12), 0.5, td_error) == expected


def test_the_adaptive_window_reads_the_floor_strictly():
    assert reach(Adaptive(floor=0.25, limit=12), 0.5, 1.0) == 1


def test_the_adaptive_window_of_a_retained_value_when_that_is_what_decays():
    index, model = index_pair(
        6, eps=0.0, eta=0.5, rho=0.5, window=Adaptive(floor=0.3), decay_from="priority", decay_on_insert=False
    )
    for i in range(6):
        append_both(index, model, [i == 0], priority=[8.0 if i == 5 else 0.0])
    update_both(index, model, [5], [0.0])  # retained 4.0 reaches 2.0, 1.0, 0.5
    assert index.priority(np.arange(6)).tolist() == [0.0, 0.0, 0.5, 1.0, 2.0, 4.0]
    assert_same_index(index, model)
