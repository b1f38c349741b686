"""SEMANTICS: new transitions, MaxPrio and CurrentTD, with and without decay on insertion."""

import numpy as np
import pytest

from strategies import append_both, assert_same_index, index_pair, update_both


@pytest.mark.parametrize("kind", ["pser", "per", "rank"])
def test_max_prio_inserts_one_at_the_start(kind):
    index, model = index_pair(4, kind=kind)
    assert index.max_priority == 1.0
    append_both(index, model, [True])
    assert index.priority([0]).tolist() == [1.0]


@pytest.mark.parametrize("kind", ["pser", "per", "rank"])
def test_max_prio_inserts_the_largest_priority_ever_recorded(kind):
    index, model = index_pair(2, kind=kind, eps=0.0, eta=0.0, window=0)
    append_both(index, model, [True])
    update_both(index, model, [0], [5.0])
    update_both(index, model, [0], [0.5])  # the largest ever does not fall with it
    append_both(index, model, [False])
    append_both(index, model, [False])
    append_both(index, model, [False])  # the transition that had it is long gone
    assert index.priority([2, 3]).tolist() == [5.0, 5.0]
    assert index.max_priority == 5.0


def test_a_small_td_error_does_not_lower_the_largest_priority():
    index, model = index_pair(4, eps=0.0, eta=0.0, window=0)
    append_both(index, model, [True])
    update_both(index, model, [0], [0.001])
    append_both(index, model, [False])
    assert index.priority([1]).tolist() == [1.0]


def test_max_prio_does_not_decay_on_insertion():
    index, model = index_pair(3, eps=0.0, eta=0.0, rho=0.5, window=2, decay="add", decay_on_insert=True)
    append_both(index, model, [True])
    update_both(index, model, [0], [8.0])
    update_both(index, model, [0], [1.0])
    append_both(index, model, [False])
    assert index.priority([0, 1]).tolist() == [1.0, 8.0]


def test_current_td_decays_on_insertion():
    index, model = index_pair(4, eps=0.0, rho=0.5, window=2)
    for first, td in [(True, 0.0), (False, 0.0), (False, 0.0), (False, -8.0)]:
        append_both(index, model, [first], td_error=[td])
    assert index.priority(np.arange(4)).tolist() == [0.0, 2.0, 4.0, 8.0]
    assert index.max_priority == 8.0


def test_current_td_without_decay_on_insertion():
    index, model = index_pair(4, eps=0.0, rho=0.5, window=2, decay_on_insert=False)
    for first, td in [(True, 0.0), (False, 0.0), (False, 0.0), (False, -8.0)]:
        append_both(index, model, [first], td_error=[td])
    assert index.priority(np.arange(4)).tolist() == [0.0, 0.0, 0.0, 8.0]


def test_current_td_adds_eps_and_a_given_priority_is_taken_as_it_is():
    index, model = index_pair(4, eps=0.25, window=0)
    append_both(index, model, [True], td_error=[-2.0])
    append_both(index, model, [False], priority=[2.0])
    assert index.priority([0, 1]).tolist() == [2.25, 2.0]


def test_current_td_with_the_add_decay_is_capped():
    index, model = index_pair(3, eps=0.0, rho=0.5, window=2, decay="add")
    append_both(index, model, [True], priority=[1.0])
    append_both(index, model, [False], priority=[1.0])
    append_both(index, model, [False], priority=[1.0])
    assert index.priority(np.arange(3)).tolist() == [1.0, 1.0, 1.0]
    assert_same_index(index, model)


def test_a_given_priority_counts_for_the_largest_ever():
    index, model = index_pair(3)
    append_both(index, model, [True], priority=[3.0])
    append_both(index, model, [False])
    assert index.priority([1]).tolist() == [3.0]


def test_per_takes_the_td_error_of_a_new_transition_without_decay():
    index, model = index_pair(3, kind="per", eps=0.0)
    append_both(index, model, [True], td_error=[0.5])
    append_both(index, model, [False], td_error=[4.0])
    assert index.priority([0, 1]).tolist() == [0.5, 4.0]


def test_rows_of_one_call_are_taken_in_order():
    rows = [
        (True, 0, 1.0),
        (False, 0, 4.0),
        (True, 1, 0.5),
        (False, 0, 2.0),
        (False, 1, 16.0),
        (True, 0, 9.0),
    ]
    for decay in ("max", "add"):
        together, model = index_pair(4, num_streams=2, rho=0.5, window=3, decay=decay)
        singly, _ = index_pair(4, num_streams=2, rho=0.5, window=3, decay=decay)
        append_both(
            together,
            model,
            *(list(c) for c in list(zip(*rows, strict=True))[:2]),
            td_error=[r[2] for r in rows],
        )
        for first, stream, td in rows:
            singly.append([first], stream=[stream], td_error=[td])
        ids = np.arange(2, 6)
        np.testing.assert_array_equal(together.priority(ids), singly.priority(ids))
        assert_same_index(together, model)
