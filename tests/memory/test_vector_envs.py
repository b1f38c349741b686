"""SEMANTICS: vector environments. Every stream has its own predecessors, in lockstep or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from strategies import append_both, assert_same_index, index_pair, memory_pair, update_both

from .games import FrameGame, MemoryDriver

QUIET = {"eps": 0.0, "eta": 0.0, "rho": 0.5, "window": 5, "decay_on_insert": False}


def test_the_predecessor_is_the_previous_step_of_the_same_environment():
    index, model = index_pair(12, num_streams=3, **QUIET)
    for t in range(4):
        append_both(index, model, [t == 0] * 3, priority=[0.0] * 3)
    update_both(index, model, [10], [8.0])  # environment 1
    expected = np.zeros(12)
    expected[[10, 7, 4, 1]] = [8.0, 4.0, 2.0, 1.0]
    assert (index.priority(np.arange(12)) == expected).all()


def test_one_environments_episode_end_does_not_stop_anothers_decay():
    index, model = index_pair(6, num_streams=2, **QUIET)
    append_both(index, model, [True, True], priority=[0.0] * 2)
    append_both(index, model, [True, False], priority=[0.0] * 2)
    append_both(index, model, [False, False], priority=[0.0] * 2)
    update_both(index, model, [4, 5], [8.0, 8.0])
    assert index.priority(np.arange(6)).tolist() == [0.0, 2.0, 4.0, 4.0, 8.0, 8.0]


def test_streams_need_not_be_in_lockstep():
    index, model = index_pair(16, num_streams=3, **QUIET)
    order = [2, 0, 0, 2, 1, 0, 2, 2, 1]
    started = set()
    for stream in order:
        append_both(index, model, [stream not in started], [stream], priority=[0.0])
        started.add(stream)
    update_both(index, model, [7], [8.0])  # stream 2: 7 ← 6 ← 3 ← 0
    expected = np.zeros(9)
    expected[[7, 6, 3, 0]] = [8.0, 4.0, 2.0, 1.0]
    assert (index.priority(np.arange(9)) == expected).all()
    assert_same_index(index, model)


def test_a_stream_may_come_several_times_in_one_call():
    index, model = index_pair(16, num_streams=2, **QUIET)
    append_both(index, model, [True, True, False, False, False], [0, 1, 0, 0, 1], priority=[0.0] * 5)
    update_both(index, model, [3, 4], [8.0, 8.0])
    assert index.priority(np.arange(5)).tolist() == [2.0, 4.0, 4.0, 8.0, 8.0]


def test_a_streams_first_transition_ever_has_no_predecessor_whatever_its_flag():
    index, model = index_pair(6, num_streams=2, **QUIET)
    append_both(index, model, [False, False], priority=[0.0] * 2)
    append_both(index, model, [False, False], priority=[0.0] * 2)
    update_both(index, model, [1, 2], [4.0, 8.0])
    assert index.priority(np.arange(4)).tolist() == [4.0, 4.0, 8.0, 0.0]


@pytest.mark.parametrize("num_streams", [1, 2, 63, 64, 65, 200])
def test_any_number_of_streams(num_streams):
    index, model = index_pair(5 * num_streams + 3, num_streams=num_streams, **QUIET)
    rng = np.random.default_rng(num_streams)
    for t in range(8):
        first = (rng.random(num_streams) < 0.2) | (t == 0)
        append_both(index, model, first.tolist(), priority=[0.0] * num_streams)
    ids = rng.choice(model.ids, 20).tolist()
    update_both(index, model, ids, rng.normal(size=20).tolist())
    assert_same_index(index, model)


def add_all(memory, model, rows, stream=None):
    """`rows`: (observation, action, reward, next observation, terminated, truncated) per environment."""
    columns = [np.stack([np.asarray(row[c]) for row in rows]) for c in range(6)]
    ids = memory.add(*columns, stream=stream)
    expected = []
    for e, row in enumerate(rows):
        expected += model.add_row(e if stream is None else stream[e], *row)
    assert ids.tolist() == expected


def rows_at(t, count, ends=()):
    return [
        (np.float32([t, e]), 10 * t + e, float(t), np.float32([t + 1, e]), e in ends, False)
        for e in range(count)
    ]


def test_add_takes_one_step_of_all_environments():
    memory, model = memory_pair(20, pser.Array((2,), np.float32), num_envs=3, **QUIET)
    for t in range(4):
        add_all(memory, model, rows_at(t, 3, ends=(1,) if t == 1 else ()))
    assert len(memory) == 12
    memory.update_priorities([9, 10, 11], [8.0] * 3)
    model.index.update([9, 10, 11], [8.0] * 3)
    expected = [model.index.priority(i) for i in range(12)]
    assert memory.priorities(np.arange(12)).tolist() == expected
    batch = memory.sample(64, beta=0.5)
    for row, transition in enumerate(batch.ids.tolist()):
        wanted = model.transitions[transition]
        np.testing.assert_array_equal(batch.observation[row], wanted.observation)
        np.testing.assert_array_equal(batch.next_observation[row], wanted.next_observation)
        assert batch.action[row] == wanted.action
        assert batch.terminated[row] == wanted.terminated


def test_add_takes_a_step_of_the_named_environments_only():
    memory, model = memory_pair(20, pser.Array((2,), np.float32), num_envs=3, **QUIET)
    add_all(memory, model, rows_at(0, 3))
    add_all(memory, model, rows_at(1, 2), stream=[2, 0])
    add_all(memory, model, rows_at(2, 1), stream=[2])
    memory.update_priorities([5], [8.0])  # stream 2: 5 ← 3 ← 2
    model.index.update([5], [8.0])
    assert memory.priorities(np.arange(6)).tolist() == [model.index.priority(i) for i in range(6)]
    assert memory.priorities([3])[0] == 4.0


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("frames", [True, False], ids=["frames", "array"])
def test_an_environment_may_be_named_several_times_in_one_add(frames, n_step):
    observation = pser.Frames((2,), stack=3) if frames else pser.Array((3, 2), np.uint8)
    memory, model = memory_pair(20, observation, num_envs=2, n_step=n_step)
    driver = MemoryDriver(memory, model, [FrameGame((2,), 3, seed=e) for e in range(2)])
    for t in range(10):
        driver.step(["", "", "terminated" if t % 3 == 0 else "", ""], stream=[0, 1, 0, 0])
    driver.compare_everything()


def test_one_environment_accepts_inputs_with_and_without_a_leading_axis():
    plain, _ = memory_pair(8, pser.Array((2,), np.float32))
    batched, _ = memory_pair(8, pser.Array((2,), np.float32))
    for t in range(4):
        x, y = np.float32([t, 0]), np.float32([t + 1, 0])
        assert plain.add(x, t, 0.5, y, False, t == 2).tolist() == [t]
        assert batched.add(x[None], [t], [0.5], y[None], [False], [t == 2]).tolist() == [t]
    one, other = plain.sample(8, beta=0.5), batched.sample(8, beta=0.5)
    for name in ("observation", "action", "reward", "next_observation", "discount", "terminated", "ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(order=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), capacity=st.integers(1, 30))
def test_interleaved_streams_equal_the_model(order, capacity):
    index, model = index_pair(capacity, num_streams=4, **QUIET)
    started = set()
    for stream, first in order:
        append_both(index, model, [first or stream not in started], [stream], priority=[0.0])
        started.add(stream)
    for transition in model.ids:
        update_both(index, model, [transition], [float(transition % 5)])
    assert_same_index(index, model)
