"""SEMANTICS: decay never crosses an episode's start, whatever ended the episode before it."""

import numpy as np
import pytest

import pser
from strategies import append_both, index_pair, memory_pair, update_both


def test_decay_stops_at_episode_start():
    index, model = index_pair(6, eps=0.0, eta=0.0, rho=0.5, window=5, decay_on_insert=False)
    for first in [True, False, False, True, False, False]:
        append_both(index, model, [first], priority=[0.0])
    update_both(index, model, [5], [8.0])
    assert index.priority(np.arange(6)).tolist() == [0.0, 0.0, 0.0, 2.0, 4.0, 8.0]


def test_decay_from_an_episodes_first_transition_goes_nowhere():
    index, model = index_pair(4, eps=0.0, eta=0.0, rho=0.5, window=5, decay_on_insert=False)
    for first in [True, False, True, False]:
        append_both(index, model, [first], priority=[0.0])
    update_both(index, model, [2], [8.0])
    assert index.priority(np.arange(4)).tolist() == [0.0, 0.0, 8.0, 0.0]


def test_episodes_of_one_step_receive_no_decay():
    index, model = index_pair(5, eps=0.0, eta=0.0, rho=0.9, window=5, decay_on_insert=False)
    for _ in range(5):
        append_both(index, model, [True], priority=[0.0])
    update_both(index, model, [4, 2], [8.0, 3.0])
    assert index.priority(np.arange(5)).tolist() == [0.0, 0.0, 3.0, 0.0, 8.0]


def test_decay_on_insertion_stops_at_episode_start():
    index, model = index_pair(4, eps=0.0, rho=0.5, window=5)
    for first, priority in [(True, 0.0), (False, 0.0), (True, 0.0), (False, 8.0)]:
        append_both(index, model, [first], priority=[priority])
    assert index.priority(np.arange(4)).tolist() == [0.0, 0.0, 4.0, 8.0]


def run_episode(memory, model, ends, n_step=1):
    """One environment, one step per entry of `ends`: None, "terminated", "truncated" or "cut"."""
    for t, end in enumerate(ends):
        terminated, truncated = end == "terminated", end == "truncated"
        row = (np.float32([t]), t, 0.0, np.float32([t + 1]), terminated, truncated)
        ids = memory.add(*row, priority=0.0)
        assert ids.tolist() == model.add_row(0, *row, given=0.0)
        if end == "cut":
            memory.end_episodes()
            model.end_episode(0)


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("end", ["terminated", "truncated", "cut"])
def test_an_episode_ends_by_terminated_by_truncated_or_by_being_cut(end, n_step):
    memory, model = memory_pair(
        12, pser.Array((1,), np.float32), n_step=n_step, eps=0.0, eta=0.0, rho=0.5, window=5
    )
    run_episode(memory, model, [None, None, end, None, None, "terminated"])
    memory.update_priorities([5], [8.0])
    model.index.update([5], [8.0])
    assert memory.priorities(np.arange(6)).tolist() == [0.0, 0.0, 0.0, 2.0, 4.0, 8.0]
    memory.update_priorities([2], [8.0])
    assert memory.priorities(np.arange(6)).tolist() == [2.0, 4.0, 8.0, 2.0, 4.0, 8.0]
    memory.check_invariants()


def test_ending_episodes_twice_or_before_any_step_is_harmless():
    memory, model = memory_pair(12, pser.Array((1,), np.float32), eps=0.0, eta=0.0, rho=0.5, window=5)
    memory.end_episodes()
    run_episode(memory, model, [None, "cut"])
    memory.end_episodes()
    run_episode(memory, model, [None, None])
    memory.update_priorities([3], [8.0])
    assert memory.priorities(np.arange(4)).tolist() == [0.0, 0.0, 4.0, 8.0]


def test_only_the_named_streams_episodes_are_ended():
    memory, _ = memory_pair(12, pser.Array((1,), np.float32), num_envs=2, eps=0.0, eta=0.0, rho=0.5, window=5)
    x, no = np.zeros((2, 1), np.float32), np.zeros(2, bool)
    for t in range(2):
        memory.add(x, [0, 0], [0.0, 0.0], x, no, no, priority=[0.0, 0.0])
        if t == 0:
            memory.end_episodes(stream=[1])
    memory.update_priorities([2, 3], [8.0, 8.0])
    assert memory.priorities(np.arange(4)).tolist() == [4.0, 0.0, 8.0, 8.0]
