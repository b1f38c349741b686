"""Hindsight replay by priority, against stable-baselines3 itself."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv

import pser
from integrations.bare import assert_same_priorities
from pser.integrations import sb3

RULE = pser.PSER(alpha=0.6, rho=0.5, window=4, eta=0.3)
SMALL = {"learning_starts": 60, "buffer_size": 400, "batch_size": 50, "seed": 0, "device": "cpu"}
SMALL |= {"train_freq": 4, "gradient_steps": 2}


def envs(number=2, continuous=False):
    return make_vec_env(
        BitFlippingEnv, number, seed=0, env_kwargs={"n_bits": 4, "max_steps": 7, "continuous": continuous}
    )


def model(name="DQN", rule=RULE, number=2, **more):
    kwargs = {"prioritization": rule, **more}
    return getattr(sb3, name)(
        "MultiInputPolicy",
        envs(number, continuous=name != "DQN"),
        replay_buffer_class=sb3.PrioritizedHerReplayBuffer,
        replay_buffer_kwargs=kwargs,
        **{**SMALL, "policy_kwargs": {"net_arch": [16]}},
    )


@pytest.mark.parametrize("name", ["DQN", "SAC"])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goal_environments_train(name, strategy):
    algorithm = model(name, goal_selection_strategy=strategy)
    algorithm.learn(600)
    index = algorithm.replay_buffer.index
    index.check_invariants()
    assert algorithm.replay_buffer.full
    assert index.stats()["updates_applied"] == algorithm._n_updates * 50 > 0


@pytest.mark.parametrize("rule", [RULE, pser.PER(weights="memory"), pser.Uniform()])
def test_only_steps_of_finished_episodes_are_drawn_each_as_often_as_its_priority_says(rule):
    memory = model(rule=rule, beta=1.0).replay_buffer
    fill(memory, 203)
    valid = (memory.ep_length > 0)[memory.places(np.arange(memory.index.oldest_id, memory.index.next_id))]
    assert 0 < valid.sum() < len(valid)
    ids = np.arange(memory.index.oldest_id, memory.index.next_id)
    memory.update_priorities(ids, np.linspace(0.1, 3.0, len(ids)))
    batches = [memory.sample(100) for _ in range(300)]
    drawn = np.concatenate([batch.ids for batch in batches])
    counts = np.bincount(drawn - ids[0], minlength=len(ids))
    assert (counts[~valid] == 0).all()
    expected = memory.index.probabilities(ids)[valid]
    expected *= 30_000 / expected.sum()
    assert (np.abs(counts[valid] - expected) < 6 * np.sqrt(expected)).all()
    probabilities = memory.index.probabilities(batches[0].ids)
    least = (
        memory.index.probabilities(ids).min() if rule == pser.PER(weights="memory") else probabilities.min()
    )
    np.testing.assert_allclose(batches[0].weights[:, 0], least / probabilities, rtol=1e-5)


def fill(memory, steps, seed=0):
    """Steps of two environments whose numbers tell where they belong; episodes of 5 and of 8 steps."""
    for time in range(steps):
        goal = np.zeros((2, 4), np.int8)
        rows = {"observation": goal, "achieved_goal": goal + time % 2, "desired_goal": goal}
        done = np.array([time % 5 == 4, time % 8 == 7])
        memory.add(rows, rows, np.zeros((2, 1)), np.full(2, -1.0), done, [{}, {}])


def test_goals_are_replaced_in_sb3s_share_of_the_rows_and_rewarded_anew():
    algorithm = model(n_sampled_goal=4)
    algorithm.learn(300)
    memory = algorithm.replay_buffer
    batch = memory.sample(100)
    steps, envs_of = memory.places(batch.ids)
    stored = memory.observations["desired_goal"][steps, envs_of]
    real = (batch.observations["desired_goal"].numpy() == stored).all(axis=1)
    assert real[:20].all()  # SB3 puts the real ones first: one in five
    assert not real[20:].all()
    np.testing.assert_array_equal(batch.actions, memory.actions[steps, envs_of])
    reached = (batch.next_observations["achieved_goal"] == batch.next_observations["desired_goal"]).all(dim=1)
    np.testing.assert_array_equal(batch.rewards[:, 0], reached.numpy() - 1.0)
    ages = batch.ids.reshape(-1)
    assert abs(np.median(ages[:20]) - np.median(ages[20:])) < 200  # neither share is the older one


def test_nothing_can_be_drawn_before_an_episode_has_ended():
    memory = model().replay_buffer
    fill(memory, 3)
    with pytest.raises(RuntimeError, match="before the end of the first episode"):
        memory.sample(4)


def test_a_saved_buffer_goes_on(tmp_path):
    algorithm = model()
    algorithm.learn(200)
    algorithm.save_replay_buffer(tmp_path / "buffer")
    again = model()
    with pytest.warns(UserWarning, match="will be truncated"):  # SB3's own word on the running episodes
        again.load_replay_buffer(tmp_path / "buffer")
    assert_same_priorities(algorithm.replay_buffer.index, again.replay_buffer.index)
    assert again.replay_buffer._first.all()
    again.learn(100)


def test_n_step_returns_are_refused():
    with pytest.raises(pser.PserError, match="leave n_steps at 1"):
        model(n_steps=3)
