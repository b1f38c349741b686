"""SEMANTICS: overwritten memory. The ring keeps the newest `capacity` transitions; decay knows its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import append_both, assert_same_index, assert_valid_draw, index_pair, update_both

QUIET = {"eps": 0.0, "eta": 0.0, "rho": 0.5, "decay_on_insert": False}


def run(capacity, count, num_streams=1, firsts=(0,), **rules):
    """`count` appends of one stream, priority 0, episodes starting at `firsts`."""
    index, model = index_pair(capacity, num_streams=num_streams, **{**QUIET, **rules})
    for i in range(count):
        append_both(index, model, [i in firsts], stream=[0], priority=[0.0])
    return index, model


def test_the_oldest_transition_is_overwritten_first():
    index, model = run(4, 6)
    assert (len(index), index.oldest_id, index.next_id) == (4, 2, 6)
    assert np.isnan(index.priority(np.array([0, 1]))).all()
    assert not np.isnan(index.priority(np.array([2, 3, 4, 5]))).any()
    assert_same_index(index, model)


def test_decay_wraps_around_the_physical_end_of_the_ring():
    index, model = run(
        8, 10, window=5
    )  # ids 8 and 9 lie in slots 0 and 1, their predecessors in slots 7, 6, 5
    update_both(index, model, [9], [32.0])
    assert index.priority(np.arange(2, 10)).tolist() == [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert_same_index(index, model)


def test_decay_never_crosses_from_the_oldest_into_newer_transitions():
    index, model = run(8, 12, window=5)  # the oldest is 4 (slot 4); slot 3 holds 11, of the same stream
    update_both(index, model, [4], [32.0])
    assert index.priority(np.arange(4, 12)).tolist() == [32.0] + [0.0] * 7
    update_both(index, model, [5], [64.0])
    assert index.priority(np.arange(4, 12)).tolist() == [32.0, 64.0] + [0.0] * 6
    assert_same_index(index, model)


def test_decay_stops_at_an_overwritten_predecessor_with_several_streams():
    index, model = index_pair(4, num_streams=3, **QUIET, window=5)
    append_both(index, model, [True, True, True], priority=[0.0] * 3)
    append_both(index, model, [False, False, False], priority=[0.0] * 3)  # retained: 2 3 4 5
    update_both(index, model, [3, 4], [8.0, 8.0])  # their predecessors 0 and 1 are gone
    assert index.priority(np.arange(2, 6)).tolist() == [0.0, 8.0, 8.0, 0.0]
    update_both(index, model, [5], [8.0])
    assert index.priority(np.arange(2, 6)).tolist() == [4.0, 8.0, 8.0, 8.0]
    assert_same_index(index, model)


def test_a_slow_streams_predecessor_may_have_been_overwritten_long_ago():
    index, model = index_pair(5, num_streams=2, **QUIET, window=5)
    append_both(index, model, [True, True], priority=[0.0, 0.0])
    for _ in range(20):
        append_both(index, model, [False], stream=[0], priority=[0.0])
    append_both(
        index, model, [False], stream=[1], priority=[0.0]
    )  # id 22; its predecessor 1 lay where 21 lies now
    update_both(index, model, [22], [8.0])
    assert index.priority(np.arange(18, 23)).tolist() == [0.0, 0.0, 0.0, 0.0, 8.0]
    append_both(index, model, [False], stream=[1], priority=[0.0])
    update_both(index, model, [23], [64.0])
    assert index.priority(np.arange(19, 24)).tolist() == [0.0, 0.0, 0.0, 32.0, 64.0]
    assert_same_index(index, model)


@pytest.mark.parametrize("window", [3, 7, 8, 9, 100])
def test_a_window_as_long_as_the_ring_or_longer_touches_no_transition_twice(window):
    for count in (8, 9, 13, 16, 40):
        index, model = run(8, count, window=window, decay="add")
        update_both(index, model, [count - 1], [256.0])
        assert_same_index(index, model)


def test_capacity_one():
    index, model = index_pair(1, rho=0.5, window=3)
    for i in range(4):
        append_both(index, model, [i == 0], td_error=[float(i)])
        assert_same_index(index, model)
        assert index.sample(3)[0].tolist() == [i] * 3
        assert update_both(index, model, [i], [0.5]) == 1
        if i:
            assert update_both(index, model, [i - 1], [9.0]) == 0
        assert_same_index(index, model)


@pytest.mark.parametrize("capacity", [2, 3, 15, 16, 17, 31, 33, 100, 255, 256, 257, 273])
def test_any_capacity_works_whatever_the_fan_out_of_the_tree(capacity):
    index, model = index_pair(capacity, rho=0.65, window=None, num_streams=2)
    rng = np.random.default_rng(capacity)
    for _ in range(capacity + capacity // 2):
        append_both(index, model, (rng.random(2) < 0.1).tolist(), td_error=rng.normal(size=2).tolist())
    assert_same_index(index, model)
    ids, _ = index.sample(64)
    assert ids.min() >= index.oldest_id
    assert ids.max() < index.next_id
    update_both(index, model, ids.tolist(), rng.normal(size=64).tolist())
    assert_same_index(index, model)


def test_a_tree_of_four_levels_equals_the_model():
    index, model = index_pair(4999, rho=0.8, window=None, num_streams=3, seed=2)
    rng, draws = np.random.default_rng(1), np.random.default_rng(2)
    for _ in range(2500):
        append_both(index, model, (rng.random(3) < 0.02).tolist(), td_error=rng.normal(size=3).tolist())
    for _ in range(5):
        ids, _ = index.sample(500)
        assert_valid_draw(model, ids.tolist(), draws.random(500).tolist())
        update_both(index, model, ids.tolist(), (10 * rng.normal(size=500)).tolist())
        assert_same_index(index, model)


def test_more_rows_than_capacity_in_one_call():
    index, model = index_pair(3, num_streams=2, rho=0.5, window=4)
    append_both(
        index, model, [True, True, False, False, False, False], [0, 1, 0, 1, 0, 1], td_error=[1.0] * 6
    )
    assert index.oldest_id == 3
    assert_same_index(index, model)


@given(
    capacity=st.integers(1, 20),
    episodes=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    window=st.integers(0, 25),
    data=st.data(),
)
def test_every_single_update_of_a_wrapped_ring_equals_the_model(capacity, episodes, window, data):
    index, model = index_pair(capacity, **QUIET, window=window)
    for length in episodes:
        for t in range(length):
            append_both(index, model, [t == 0], priority=[0.0])
    for transition in data.draw(st.permutations(model.ids)):
        update_both(index, model, [transition], [float(1 + transition % 3)])
        assert_same_index(index, model)
