"""SEMANTICS: a batch is order-free, duplicates take the larger TD error once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from strategies import (
    append_both,
    as_prioritization,
    assert_same_index,
    index_pair,
    pser_rules,
    td_errors,
    update_both,
)


def episode(length, priority=1.0, **rules):
    index, model = index_pair(length, decay_on_insert=False, **rules)
    for i in range(length):
        append_both(index, model, [i == 0], priority=[priority])
    return index, model


def test_every_transition_takes_its_own_update_before_any_decay():
    # Sequentially, [1, 0] would let 0's own update wipe out the decay that 1 had sent to it.
    for order in ([0, 1], [1, 0]):
        index, model = episode(2, eps=0.0, eta=0.0, rho=0.5, window=1)
        update_both(index, model, order, [{0: 0.0, 1: 8.0}[i] for i in order])
        assert index.priority(np.arange(2)).tolist() == [4.0, 8.0]


def test_eta_looks_at_the_priority_held_before_the_call():
    # A decay of the same call must not raise what η retains: 0 keeps 0.5·1, not 0.5·(decayed 4).
    index, model = episode(2, eps=0.0, eta=0.5, rho=0.5, window=1, decay="add")
    update_both(index, model, [1, 0], [8.0, 0.0])
    assert index.priority(np.arange(2)).tolist() == [4.5, 8.0]


def test_a_transition_sampled_twice_takes_the_larger_td_error_once():
    index, model = episode(3, eps=0.0, eta=0.5, rho=0.5, window=2, decay="add")
    assert update_both(index, model, [2, 2, 2], [1.0, -6.0, 2.0]) == 3
    assert index.priority(np.arange(3)).tolist() == [2.5, 4.0, 6.0]


def test_eta_acts_once_on_a_transition_sampled_twice():
    index, model = episode(1, priority=8.0, eps=0.0, eta=0.5, window=0)
    update_both(index, model, [0, 0], [0.0, 0.0])
    assert index.priority(np.arange(1)).tolist() == [4.0]


def test_decays_of_two_transitions_meet_by_max():
    index, model = episode(4, priority=0.0, eps=0.0, eta=0.0, rho=0.5, window=3)
    update_both(index, model, [3, 2], [4.0, 16.0])
    assert index.priority(np.arange(4)).tolist() == [4.0, 8.0, 16.0, 4.0]


def test_decays_of_two_transitions_meet_by_capped_sum():
    index, model = episode(4, priority=0.0, eps=0.0, eta=0.0, rho=0.5, window=3, decay="add")
    update_both(index, model, [3, 2], [4.0, 16.0])
    assert index.priority(np.arange(4)).tolist() == [4.5, 9.0, 16.0, 4.0]
    assert index.max_priority == 16.0


@given(
    rules=pser_rules,
    rows=st.lists(st.tuples(st.integers(0, 11), td_errors), min_size=1, max_size=12),
    data=st.data(),
)
def test_shuffling_a_batch_changes_nothing(rules, rows, data):
    shuffled = data.draw(st.permutations(rows))
    results = []
    for batch in (rows, shuffled):
        index = pser.PriorityIndex(12, as_prioritization(rules), seed=0)
        for i in range(12):
            index.append([i % 5 == 0], priority=[float(i)])
        index.update([i for i, _ in batch], [d for _, d in batch])
        results.append((index.priority(np.arange(12)).tobytes(), index.max_priority, index.stats()))
    assert results[0] == results[1]


@pytest.mark.parametrize("decay", ["max", "add"])
@pytest.mark.parametrize("decay_from", ["td", "priority"])
def test_a_large_overlapping_batch_equals_the_model(decay, decay_from):
    rng = np.random.default_rng(5)
    index, model = episode(100, decay=decay, decay_from=decay_from, rho=0.8, window=None)
    for _ in range(20):
        ids = rng.integers(0, 100, 64).tolist()
        update_both(index, model, ids, rng.normal(size=64).tolist())
        assert_same_index(index, model)


def test_an_empty_update_changes_nothing():
    index, model = episode(3)
    assert index.update(np.array([], np.int64), np.array([], np.float64)) == 0
    assert index.update([], []) == 0
    assert_same_index(index, model)
