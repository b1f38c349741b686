"""The Tianshou adapter, against the library itself."""

import pickle

import numpy as np
import pytest

pytest.importorskip("tianshou")

import gymnasium as gym
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, ReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import pser
from integrations.bare import Diary, assert_same_priorities, retained
from pser.integrations.tianshou import PrioritizedReplayBuffer, PrioritizedVectorReplayBuffer

RULE = pser.PSER(alpha=0.6, rho=0.5, window=4, eta=0.3)
SIMPLE = pser.PSER(rho=0.5, window=4, eta=0.0, eps=0.0)


def vector(size=40, envs=2, rule=RULE, **settings):
    return PrioritizedVectorReplayBuffer(size, envs, rule, seed=0, **settings)


def rows(step, envs, terminated=False, truncated=False):
    """One step of the named environments; numbers tell where they belong: 100·environment + step."""
    envs = np.asarray(envs)
    place = 100.0 * envs + step
    flags = [np.broadcast_to(np.asarray(flag, bool), envs.shape).copy() for flag in (terminated, truncated)]
    return Batch(
        obs=place.reshape(-1, 1),
        act=np.zeros(len(envs), int),
        rew=np.ones(len(envs)),
        terminated=flags[0],
        truncated=flags[1],
        obs_next=place.reshape(-1, 1) + 1,
        info=Batch(),
    )


def row(step, **flags):
    return rows(step, [0], **flags)[0]


def all_priorities(memory):
    return memory.index.priority(retained(memory.index))


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_decay_stops_where_an_episode_was_in_many_environments(end):
    memory = vector(rule=SIMPLE)
    for step in range(6):
        memory.add(rows(step, [0, 1], **({end: [True, False]} if step == 2 else {})))
    memory.update_weight(np.arange(12), np.full(12, 1e-3))
    memory.update_weight(np.array([8, 9]), torch.tensor([0.8, 0.8], dtype=torch.float64))
    ended, running = all_priorities(memory).reshape(6, 2).T
    np.testing.assert_allclose(ended, [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3])
    np.testing.assert_allclose(running, [0.05, 0.1, 0.2, 0.4, 0.8, 1e-3])


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_decay_stops_where_an_episode_was_in_one_environment(end):
    memory = PrioritizedReplayBuffer(10, SIMPLE, seed=0)
    for step in range(6):
        memory.add(row(step, **({end: True} if step == 2 else {})))
    memory.update_weight(np.arange(6), np.full(6, 1e-3))
    memory.update_weight(np.array([4]), np.array([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3])


def ragged(memory, steps=150, envs=4, seed=0):
    """Environments that do not keep step; returns what happened as (environment, step, first, done)."""
    rng = np.random.default_rng(seed)
    clock, ended, story = np.zeros(envs, int), np.ones(envs, bool), []
    for _ in range(steps):
        chosen = np.flatnonzero(rng.random(envs) < [0.9, 0.5, 0.3, 0.05])
        if not len(chosen):
            continue
        batch = Batch.cat([rows(clock[env], [env]) for env in chosen])
        batch.terminated = rng.random(len(chosen)) < 0.1
        batch.truncated = rng.random(len(chosen)) < 0.1
        memory.add(batch, buffer_ids=chosen)
        for number, env in enumerate(chosen):
            done = bool(batch.terminated[number] | batch.truncated[number])
            story.append((env, clock[env], bool(ended[env]), done))
            ended[env] = done
        clock[chosen] += 1
    return story


def test_prev_and_next_follow_each_environments_own_episode():
    memory = vector(size=37, envs=4)
    story = ragged(memory)
    kept = range(len(story) - 37, len(story))
    for number in kept:
        env, step, first, done = story[number]
        before = [n for n in kept if story[n][:2] == (env, step - 1) and not first]
        after = [n for n in kept if story[n][:2] == (env, step + 1) and not done]
        assert memory.prev(number % 37) == (before[0] if before else number) % 37
        assert memory.next(np.array([number % 37]))[0] == (after[0] if after else number) % 37
        assert memory.obs[number % 37, 0] == 100 * env + step
    newest = {story[n][0]: n for n in kept}
    unfinished = {n % 37 for n in newest.values() if not story[n][3]}
    assert set(memory.unfinished_index().tolist()) == unfinished


def test_priorities_equal_those_of_a_bare_index_fed_the_same_transitions():
    memory = vector(size=64, envs=4)
    diary, rng = Diary(memory.index), np.random.default_rng(5)
    add = memory.add

    def add_and_learn(batch, buffer_ids=None):
        result = add(batch, buffer_ids)
        _, slots = memory.sample(16)
        memory.update_weight(slots, rng.normal(size=16) * 3)
        return result

    calls, append = [], memory.index.append

    def counted(first, **kwargs):
        calls.append(len(first))
        return append(first, **kwargs)

    memory.index.append = counted
    memory.add = add_and_learn
    story = ragged(memory)
    told = iter(story)
    starts = []
    for count in calls:
        part = [next(told) for _ in range(count)]
        starts.append((np.array([row[2] for row in part]), np.array([row[0] for row in part])))
    bare = diary.replayed(starts, seed=0)
    assert diary.updates > 100
    assert memory.index.next_id > 2 * 64
    assert_same_priorities(memory.index, bare)


def agent(observations=4, actions=2, **settings):
    net = Net(state_shape=(observations,), action_shape=actions, hidden_sizes=[16])
    space = gym.spaces.Discrete(actions)
    policy = DiscreteQLearningPolicy(model=net, action_space=space, eps_training=0.5)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50, **settings)


@pytest.mark.parametrize("settings", [{}, {"ignore_obs_next": True}])
def test_a_training_run_with_four_environments_completes(settings):
    envs = DummyVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=15) for _ in range(4)])
    envs.seed(0)
    memory = vector(size=1000, envs=4, **settings)
    algorithm = agent(n_step_return_horizon=3)
    collector = Collector(algorithm, envs, memory)
    collector.reset()
    collector.collect(n_step=200, random=True)
    memory.end_episodes()
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=2000,
            collection_step_num_env_steps=40,
            update_step_num_gradient_steps_per_sample=0.25,
            batch_size=32,
            verbose=False,
            show_progress=False,
        )
    )
    memory.index.check_invariants()
    assert memory.index.next_id >= 2200
    assert memory.index.stats()["updates_applied"] >= 400 * 32
    assert memory.index.stats()["decayed_mass_seen"] > 0.0


def test_statistics_of_episodes_are_those_of_tianshous_own_buffer():
    memory, own = vector(size=60, envs=2), [ReplayBuffer(60) for _ in range(2)]
    rng = np.random.default_rng(0)
    for step in range(50):
        batch = rows(step, [0, 1], terminated=rng.random(2) < 0.2)
        batch.rew = rng.normal(size=2)
        slots, returns, lengths, starts = memory.add(batch)
        for env in range(2):
            _, their_return, their_length, _ = own[env].add(batch[env])
            np.testing.assert_allclose(returns[env], their_return[0])
            assert lengths[env] == their_length[0]
            if batch.terminated[env]:
                episode = memory.get_buffer_indices(int(starts[env]), int(slots[env]) + 1)
                expected = 100 * env + np.arange(step - lengths[env] + 1, step + 1)
                np.testing.assert_array_equal(memory.obs[episode, 0], expected[-len(episode) :])


def test_a_batch_holds_what_its_slots_name_and_carries_weights():
    memory = vector(size=20, envs=2, beta=1.0)
    for step in range(30):
        memory.add(rows(step, [0, 1]))
    memory.update_weight(np.arange(20), np.linspace(1, 3, 20))
    batch, slots = memory.sample(64)
    assert set(batch.obs[:, 0] % 100) <= set(range(20, 30))
    np.testing.assert_array_equal(batch.obs, memory.obs[slots])
    np.testing.assert_array_equal(batch.obs_next, memory.obs_next[slots])
    ids = 40 + slots
    probabilities = memory.index.probabilities(ids)
    np.testing.assert_allclose(batch.weight, probabilities.min() / probabilities)


def test_a_batch_of_none_is_everything_in_order():
    memory = vector(size=5, envs=1)
    for step in range(7):
        memory.add(rows(step, [0]))
    batch, slots = memory.sample(0)
    assert batch.obs[:, 0].tolist() == [2, 3, 4, 5, 6]
    assert slots.tolist() == [2, 3, 4, 0, 1]


@pytest.mark.parametrize("how", ["hdf5", "pickle"])
def test_a_saved_buffer_goes_on_bit_for_bit(tmp_path, how):
    memory = vector(size=40, envs=4)
    ragged(memory, steps=60)
    memory.update_weight(np.arange(40), np.random.default_rng(1).normal(size=40))
    if how == "hdf5":
        memory.save_hdf5(str(tmp_path / "buffer.hdf5"))
        again = PrioritizedVectorReplayBuffer.load_hdf5(str(tmp_path / "buffer.hdf5"))
    else:
        again = pickle.loads(pickle.dumps(memory))
    for seed in (2, 3):
        (one, slots), (other, others) = memory.sample(32), again.sample(32)
        np.testing.assert_array_equal(slots, others)
        np.testing.assert_array_equal(one.weight, other.weight)
        np.testing.assert_array_equal(one.obs, other.obs)
        for each in (memory, again):
            each.update_weight(slots, one.obs[:, 0] / 100)
            ragged(each, steps=20, seed=seed)
    assert_same_priorities(memory.index, again.index)
    np.testing.assert_array_equal(memory.prev(np.arange(40)), again.prev(np.arange(40)))


def test_a_file_without_priorities_is_refused(tmp_path):
    plain = ReplayBuffer(10)
    plain.add(row(0))
    plain.save_hdf5(str(tmp_path / "plain.hdf5"))
    with pytest.raises(pser.PserError, match="without priorities"):
        PrioritizedReplayBuffer.load_hdf5(str(tmp_path / "plain.hdf5"))


def test_a_file_of_many_environments_is_refused_by_the_buffer_for_one(tmp_path):
    memory = vector()
    memory.add(rows(0, [0, 1]))
    memory.save_hdf5(str(tmp_path / "many.hdf5"))
    with pytest.raises(pser.PserError, match="use PrioritizedVectorReplayBuffer"):
        PrioritizedReplayBuffer.load_hdf5(str(tmp_path / "many.hdf5"))


def test_data_moved_from_another_buffer_keeps_its_sequences():
    source = ReplayBuffer(6)
    for step in range(8):
        source.add(row(step, terminated=step == 4))
    memory = PrioritizedReplayBuffer(10, SIMPLE, seed=0)
    memory.update(source)
    assert memory.obs[:6, 0].tolist() == [2, 3, 4, 5, 6, 7]
    memory.add(row(8))
    memory.update_weight(np.arange(7), np.full(7, 1e-3))
    memory.update_weight(np.array([6]), np.array([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 1e-3, 1e-3, 0.1, 0.2, 0.4, 0.8])


def test_episodes_can_be_ended_from_outside():
    memory = vector(rule=SIMPLE)
    for step in range(4):
        memory.add(rows(step, [0, 1]))
        if step == 1:
            memory.end_episodes()
    memory.update_weight(np.arange(8), np.full(8, 1e-3))
    memory.update_weight(np.array([6]), np.array([0.8]))
    np.testing.assert_allclose(all_priorities(memory)[::2], [1e-3, 1e-3, 0.4, 0.8])
    assert memory.prev(4) == 4


@pytest.mark.parametrize("slot", [4, 12, -1])
def test_a_slot_out_of_range_is_refused_and_nothing_changes(slot):
    for memory in (vector(size=10, rule=SIMPLE), PrioritizedReplayBuffer(10, SIMPLE)):
        for step in range(4 // memory.index.num_streams):
            memory.add(rows(step, [0, 1]) if memory.index.num_streams == 2 else row(step))
        with pytest.raises(AssertionError, match=f"from 0 to 3, got {slot}: pass the indices"):
            memory.update_weight(np.array([2, slot]), np.array([5.0, 7.0]))
        assert all_priorities(memory).tolist() == [1.0] * 4


def test_reset_forgets_all():
    memory = vector()
    memory.add(rows(0, [0, 1]))
    memory.update_weight(np.array([0]), np.array([5.0]))
    memory.reset()
    assert (len(memory), memory.index.max_priority, memory.unfinished_index().size) == (0, 1.0, 0)
    memory.add(rows(3, [0, 1]))
    assert memory.sample(4)[0].obs.min() == 3


def test_wrong_uses_say_what_to_do():
    with pytest.raises(pser.PserError, match=r"prioritization=pser\.PSER\(\)"):
        PrioritizedVectorReplayBuffer(10, 2)
    with pytest.raises(pser.PserError, match="sample_avail must be False"):
        vector(sample_avail=True)
    with pytest.raises(pser.PserError, match="buffer_num must be at least 1"):
        vector(envs=0)
    with pytest.raises(pser.PserError, match="give buffer_ids"):
        vector(envs=3).add(rows(0, [0, 1]))
    with pytest.raises(pser.PserError, match="use PrioritizedReplayBuffer"):
        vector().update(ReplayBuffer(3))
    with pytest.raises(pser.PserError, match="use add or update"):
        vector().set_batch(rows(0, [0]))
    with pytest.raises(pser.PserError, match=r"use PrioritizedReplayBuffer.from_data"):
        PrioritizedVectorReplayBuffer.from_data(obs=[1])
    with pytest.raises(AttributeError):
        vector().buffers  # noqa: B018  # one ring for all environments


def test_rows_read_by_slot_carry_their_weights():
    memory = vector(size=20, envs=2, beta=0.7)
    for step in range(8):
        memory.add(rows(step, [0, 1]))
    memory.update_weight(np.arange(16), np.linspace(1, 3, 16))
    slots = np.array([3, 9, 9, 0])
    probabilities = memory.index.probabilities(slots)
    np.testing.assert_allclose(memory.get_weight(slots), (16 * probabilities) ** -0.7)
    assert memory.get_weight(3) == pytest.approx((16 * probabilities[0]) ** -0.7)
    assert memory.get_weight(18) == 0.0
    np.testing.assert_allclose(memory[slots].weight, (probabilities.min() / probabilities) ** 0.7)
    np.testing.assert_array_equal(memory[slots].obs, memory.obs[slots])
    assert len(memory[:]) == len(memory[:].weight) == 16
    assert len(memory[2:5].weight) == 3


def test_the_weight_of_a_slot_is_its_priority_to_the_alpha():
    memory = vector(size=20, envs=2, rule=SIMPLE)
    for step in range(12):
        memory.add(rows(step, [0, 1], terminated=True))
    memory.update_weight(np.arange(20), np.arange(20.0))
    np.testing.assert_allclose(memory.weight, np.arange(20.0) ** 0.5)
    assert vector(size=4).weight.tolist() == [0.0] * 4


def test_a_buffer_can_be_made_of_data():
    flags = np.array([False, False, True, False])
    numbers = np.arange(4.0)
    memory = PrioritizedReplayBuffer.from_data(
        obs=numbers,
        act=numbers,
        rew=numbers,
        terminated=flags,
        truncated=np.zeros(4, bool),
        done=flags,
        obs_next=numbers + 1,
        prioritization=SIMPLE,
    )
    assert memory.obs.tolist() == [0.0, 1.0, 2.0, 3.0]
    memory.update_weight(np.arange(4), np.full(4, 1e-3))
    memory.update_weight(np.array([2]), np.array([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [0.2, 0.4, 0.8, 1e-3])
    memory.update_weight(np.array([3]), np.array([0.9]))
    np.testing.assert_allclose(all_priorities(memory), [0.2, 0.4, 0.8, 0.9])
