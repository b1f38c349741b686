"""Data played elsewhere comes in, and goes out, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.memory.offline import episode_ids

# Minari's advice on what a published dataset should tell of itself.
pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning:minari.utils", "ignore:.* is None:UserWarning", "ignore:.* set to None:UserWarning"
)


def played(rows, seed=0, as_dict=False, dtype=np.float64):
    """Random steps of random episodes: observation, action, reward, next observation, terminated, truncated."""
    rng = np.random.default_rng(seed)
    ended = rng.random(rows) < 0.2
    terminated = ended & (rng.random(rows) < 0.5)
    now = rng.normal(size=(rows, 3)).astype(dtype)
    after = np.concatenate([now[1:], rng.normal(size=(1, 3)).astype(dtype)])
    after[ended] = rng.normal(
        size=(ended.sum(), 3)
    )  # the true final observation, not the next episode's first
    now[0, 0], now[1 % rows, 1] = -0.0, np.nan
    after[:-1][~ended[:-1]] = now[1:][~ended[:-1]]
    if as_dict:
        now, after = ({"a": x[:, :2].copy(), "b": x[:, 2].astype(np.float32)} for x in (now, after))
    action = rng.integers(-5, 5, size=(rows, 2)).astype(np.int16)
    return now, action, rng.normal(size=rows), after, terminated, ended & ~terminated


def same_bits(one, other):
    if isinstance(one, dict):
        return set(one) == set(other) and all(same_bits(one[name], other[name]) for name in one)
    return (
        one.dtype == other.dtype
        and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
    )


def assert_holds(memory, data, gamma=0.99):
    now, action, reward, after, terminated, _ = data
    batch = memory[np.arange(len(reward))]
    for held, given_ in [
        (batch.observation, now),
        (batch.action, action),
        (batch.reward, reward),
        (batch.next_observation, after),
        (batch.terminated, terminated),
    ]:
        assert same_bits(held, given_)
    np.testing.assert_array_equal(batch.discount, np.where(terminated, 0.0, gamma))


@pytest.mark.parametrize("as_dict", [False, True])
@given(rows=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_arrays_fill_a_memory_bit_for_bit(as_dict, rows, seed):
    data = played(rows, seed, as_dict)
    memory = pser.ReplayMemory.from_arrays(*data, gamma=0.99, seed=0)
    assert (memory.capacity, len(memory)) == (rows, rows)
    assert_holds(memory, data)
    firsts = np.concatenate([[True], (data[4] | data[5])[:-1]])
    np.testing.assert_array_equal(memory.index.columns().back == 0, firsts)


def test_more_rows_than_are_added_at_once_are_taken_in_order(monkeypatch):
    monkeypatch.setattr("pser.memory.offline.CHUNK_ROWS", 7)
    data = played(40)
    assert_holds(pser.ReplayMemory.from_arrays(*data), data)


def test_a_smaller_memory_keeps_the_newest():
    data = played(40)
    memory = pser.ReplayMemory.from_arrays(*data, capacity=10)
    ids = np.arange(30, 40)
    assert same_bits(memory[ids].observation, data[0][30:])


def test_n_step_returns_are_made_as_if_the_steps_were_played():
    data = played(30)
    memory = pser.ReplayMemory.from_arrays(*data, n_step=3, gamma=0.5, seed=0)
    slow = pser.ReplayMemory(
        30,
        pser.Array((3,), np.float64),
        pser.Array((2,), np.int16),
        n_step=3,
        gamma=0.5,
        reward_dtype=np.float64,
    )
    for row in zip(*data, strict=True):
        slow.add(*row)
    ids = np.arange(len(slow))
    for one, other in zip(memory[ids], slow[ids], strict=True):
        np.testing.assert_array_equal(one, other)


def test_priorities_may_be_given():
    memory = pser.ReplayMemory.from_arrays(
        *played(5), priority=np.arange(5.0), prioritization=pser.PER(), reward_dtype=np.float32
    )
    assert memory.priorities(np.arange(5)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert memory.sample(2).reward.dtype == np.float32


def test_stacks_of_frames_can_be_stored_once_each():
    stacks = np.stack([np.arange(t, t + 4, dtype=np.uint8) for t in range(21)]).reshape(21, 4, 1)
    flags = np.zeros(20, bool)
    memory = pser.ReplayMemory.from_arrays(
        stacks[:-1],
        np.zeros(20, int),
        np.zeros(20),
        stacks[1:],
        flags,
        flags,
        spec=pser.Frames((1,), stack=4),
    )
    assert same_bits(memory[np.arange(20)].observation, stacks[:-1])


def test_arrays_of_different_lengths_are_refused():
    now, action, reward, after, terminated, truncated = played(5)
    with pytest.raises(pser.PserError, match=r"as many rows, got \[4, 5\]"):
        pser.ReplayMemory.from_arrays(now, action[:4], reward, after, terminated, truncated)


def test_episodes_of_several_environments_are_told_apart():
    memory = pser.ReplayMemory(100, pser.Array((), np.float32), num_envs=2, seed=0)
    for step in range(6):
        ends = np.array([step == 2, step == 3])
        memory.add([step, 10.0 + step], [0, 0], [1.0, 1.0], [step + 1, 11.0 + step], ends, [False, False])
    episodes = [memory[ids].observation.tolist() for ids in episode_ids(memory)]
    assert episodes == [[0, 1, 2], [10, 11, 12, 13], [3, 4, 5], [14, 15]]


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return pytest.importorskip("minari")


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_memory_goes_into_a_dataset_and_comes_back_bit_for_bit(minari, as_dict, seed):
    data = played(70, seed, as_dict)
    memory = pser.ReplayMemory.from_arrays(*data, seed=0)
    dataset = memory.to_minari("pser/test-v0", description="random numbers")
    assert (dataset.total_steps, dataset.total_episodes) == (70, len(episode_ids(memory)))
    for source in (dataset, "pser/test-v0"):
        again = pser.ReplayMemory.from_minari(source, seed=0)
        assert again.capacity == 70
        assert_holds(again, data)
        np.testing.assert_array_equal(again.index.columns().back, memory.index.columns().back)


def test_a_dataset_of_several_environments_holds_each_episode(minari):
    memory = pser.ReplayMemory(100, pser.Array((), np.float32), num_envs=2, seed=0)
    for step in range(6):
        ends = np.array([step == 2, step == 3])
        memory.add([step, 10.0 + step], [0, 0], [1.0, 1.0], [step + 1, 11.0 + step], [False, False], ends)
    dataset = memory.to_minari("test-v0")
    seen = [episode.observations.tolist() for episode in dataset.iterate_episodes()]
    assert seen == [[0, 1, 2, 3], [10, 11, 12, 13, 14], [3, 4, 5, 6], [14, 15, 16]]
    assert all(episode.truncations[-1] for episode in dataset.iterate_episodes())


def test_what_a_dataset_cannot_hold_is_refused(minari):
    memory = pser.ReplayMemory(10, pser.Array((), np.float32), seed=0)
    memory.add(0.0, 0, 0.0, 1.0, False, False)
    memory.add(7.0, 0, 0.0, 8.0, False, False)
    with pytest.raises(pser.PserError, match="one observation between two steps, got two after id 0"):
        memory.to_minari("test-v0")
    with pytest.raises(pser.PserError, match="keep one with n_step=1"):
        pser.ReplayMemory(10, pser.Array(()), n_step=2).to_minari("test-v0")


def test_observations_that_are_no_arrays_are_refused():
    class Strange:
        total_steps = 1

        def iterate_episodes(self):
            from types import SimpleNamespace

            yield SimpleNamespace(id=3, observations=(np.zeros(2), np.zeros(2)), actions=np.zeros(1))

    with pytest.raises(pser.PserError, match=r"got tuple in episode 3: flatten"):
        pser.ReplayMemory.from_minari(Strange())


def test_minari_is_not_imported_unless_asked_for():
    code = "import sys, pser; assert not {'minari', 'gymnasium', 'h5py'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
