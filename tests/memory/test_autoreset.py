"""Resets stored as steps are noticed; ordinary episodes are not suspected."""

import warnings

import numpy as np
import pytest

import pser

gymnasium = pytest.importorskip("gymnasium")


def played(mode, *, reward_of_reset=0.0, num_envs=2, n_step=1):
    """CartPole in a vector environment, every row added as it comes, as one who has not read about it would."""
    envs = gymnasium.make_vec(
        "CartPole-v1", num_envs=num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}
    )
    memory = pser.ReplayMemory(
        1000, envs.single_observation_space, envs.single_action_space, num_envs, n_step=n_step, seed=0
    )
    observation, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(150):
        action = envs.action_space.sample()
        following, reward, terminated, truncated, _ = envs.step(action)
        memory.add(
            observation, action, reward + (reward == 0) * reward_of_reset, following, terminated, truncated
        )
        observation = following


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("num_envs", [2, 5])
def test_resets_stored_as_steps_are_noticed_once(num_envs, n_step):
    with pytest.warns(UserWarning, match=r"record .* with pser\.collect\.VectorRecorder") as caught:
        played("NextStep", num_envs=num_envs, n_step=n_step)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_rewarded_first_step_is_no_reset():
    played("NextStep", reward_of_reset=1.0)


def test_other_modes_are_not_suspected():
    played("SameStep")


@pytest.mark.parametrize("case", ["constant", "one of three", "frames", "one environment"])
def test_ordinary_episodes_are_not_suspected(case):
    spec = pser.Frames((), stack=1) if case == "frames" else pser.Array((1,), np.uint8)
    memory = pser.ReplayMemory(100, spec, num_envs=1 if case == "one environment" else 2, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(20):
            number = 0 if case == "constant" else step
            begins = number + 100 * (case == "one of three" and step == 8)
            follows = number + (case != "constant")
            rows = memory.num_envs
            memory.add(
                np.full((rows, 1), begins, np.uint8),
                np.zeros(rows, int),
                np.zeros(rows),
                np.full((rows, 1), follows, np.uint8),
                np.full(rows, step % 4 == 3),
                np.zeros(rows, bool),
            )


def test_the_recorder_is_never_suspected():
    from pser.collect import VectorRecorder

    envs = gymnasium.make_vec("CartPole-v1", num_envs=2)
    memory = pser.ReplayMemory(1000, envs.single_observation_space, envs.single_action_space, 2, seed=0)
    recorder = VectorRecorder(envs, memory)
    recorder.reset(seed=0)
    for _ in range(150):
        recorder.step(envs.action_space.sample())
