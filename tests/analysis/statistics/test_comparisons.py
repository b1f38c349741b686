import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pser.analysis.statistics.comparisons import holm
from pser.errors import PserError


def rejected_step_by_step(p_values, level):
    """Holm's procedure as he wrote it: reject the smallest while it is below level / (those left)."""
    left = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = set()
    while left and p_values[left[0]] * len(left) <= level:
        rejected.add(left.pop(0))
    return rejected


def test_three_values_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_one_comparison_needs_no_correction():
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@given(
    st.lists(st.integers(0, 1000).map(lambda k: k / 1000), max_size=12), st.sampled_from([0.01, 0.05, 0.2])
)
def test_corrected_values_below_the_level_are_those_the_procedure_rejects(p_values, level):
    corrected = holm(p_values)
    expected = rejected_step_by_step(p_values, level)
    assert {i for i, p in enumerate(corrected) if p <= level} == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_order_of_the_comparisons_does_not_matter(p_values, random):
    order = list(range(len(p_values)))
    random.shuffle(order)
    shuffled = holm([p_values[i] for i in order])
    np.testing.assert_array_equal(shuffled, np.array(holm(p_values))[order])


def test_what_is_no_p_value_is_refused():
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(PserError, match="between 0 and 1"):
            holm([0.5, bad])
