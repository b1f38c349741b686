"""SEMANTICS: ids are monotone 64-bit numbers; overwritten ones are skipped, unwritten ones are an error."""

import numpy as np
import pytest

import pser
from pser.errors import PserError
from strategies import append_both, assert_same_index, index_pair, memory_pair, update_both


def test_ids_count_up_from_zero_and_are_never_reused():
    index, model = index_pair(3, num_streams=2)
    seen = []
    for t in range(5):
        seen += append_both(index, model, [t == 0, t == 0])
    assert seen == list(range(10))
    assert index.next_id == 10


def test_an_overwritten_id_is_skipped_and_not_counted():
    index, model = index_pair(3, eps=0.0, eta=0.0, window=0)
    for _ in range(5):
        append_both(index, model, [True], priority=[1.0])
    assert update_both(index, model, [0, 1, 2, 4], [9.0, 9.0, 7.0, 8.0]) == 2
    assert index.priority([2, 3, 4]).tolist() == [7.0, 1.0, 8.0]
    assert index.max_priority == 8.0  # a stale TD error leaves no trace
    assert index.stats()["updates_applied"] == 2
    assert index.stats()["updates_skipped_stale"] == 2
    assert_same_index(index, model)


def test_a_stale_id_never_reaches_the_transition_that_took_its_slot():
    index, model = index_pair(2, eps=0.0, eta=0.0, rho=0.5, window=3)
    for i in range(4):
        append_both(index, model, [i == 0], priority=[0.25])
    assert update_both(index, model, [0, 1], [100.0, 100.0]) == 0
    assert index.priority([2, 3]).tolist() == [0.25, 0.25]


def test_a_batch_of_only_stale_ids_applies_nothing():
    index, model = index_pair(1)
    for _ in range(3):
        append_both(index, model, [True])
    assert update_both(index, model, [0, 1], [1.0, 1.0]) == 0


def test_duplicates_count_each():
    index, model = index_pair(2)
    append_both(index, model, [True])
    assert update_both(index, model, [0, 0, 0], [1.0, 2.0, 3.0]) == 3


@pytest.mark.parametrize("unknown", [3, 4, 10**15, -1, -(2**62)])
def test_an_id_never_written_is_an_error_and_changes_nothing(unknown):
    index, model = index_pair(3)
    for _ in range(3):
        append_both(index, model, [True])
    with pytest.raises(PserError, match=str(unknown)):
        index.update([0, unknown], [5.0, 5.0])
    with pytest.raises(PserError, match=str(unknown)):
        index.priority([0, unknown])
    assert_same_index(index, model)


def test_the_priority_of_an_overwritten_id_is_nan():
    memory, _ = memory_pair(2, pser.Array((1,), np.float32))
    for t in range(4):
        memory.add(np.float32([t]), 0, 0.0, np.float32([t + 1]), False, False, priority=float(t))
    got = memory.priorities([0, 1, 2, 3])
    assert np.isnan(got[:2]).all()
    assert got[2:].tolist() == [2.0, 3.0]
    with pytest.raises(PserError):
        memory.priorities([4])


def test_the_memory_skips_ids_overwritten_since_they_were_sampled():
    memory, _ = memory_pair(4, pser.Array((1,), np.float32), eps=0.0, eta=0.0, window=0)
    for t in range(4):
        memory.add(np.float32([t]), 0, 0.0, np.float32([t + 1]), False, False)
    ids = memory.sample(4, beta=0.5, copy=True).ids
    assert sorted(ids.tolist()) == [0, 1, 2, 3]
    for t in range(3):
        memory.add(np.float32([t]), 0, 0.0, np.float32([t + 1]), False, False)
    assert memory.update_priorities(ids, [3.0] * 4) == 1
    assert memory.priorities([3, 4, 5, 6]).tolist() == [3.0, 1.0, 1.0, 1.0]
    assert memory.max_priority == 3.0
