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
@pytest.mark.parametrize("num_envs", [1, 2, 5])
def test_resets_stored_as_steps_are_noticed_once(num_envs, n_step):
    with pytest.warns(UserWarning, match=r"record .* with pser\.collect\.VectorRecorder") as caught:
        played("NextStep", num_envs=num_envs, n_step=n_step)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_rewarded_first_step_is_no_reset():
    played("NextStep", reward_of_reset=1.0)


def test_other_modes_are_not_suspected():
    played("SameStep")


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize("case", ["constant", "goes on", "one of three", "ends where it began", "frames"])
def test_ordinary_episodes_are_not_suspected(case, num_envs):
    spec = pser.Frames((), stack=1) if case == "frames" else pser.Array((1,), np.uint8)
    memory = pser.ReplayMemory(100, spec, num_envs=num_envs, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(20):
            number = 0 if case == "constant" else step % 4 if case == "ends where it began" else step
            begins = number + 100 * (case == "one of three" and step == 8)
            follows = number + (case != "constant")
            follows %= 4 if case == "ends where it began" else 100
            rows = num_envs
            memory.add(
                np.full((rows, 1), begins, np.uint8),
                np.zeros(rows, int),
                np.zeros(rows),
                np.full((rows, 1), follows, np.uint8),
                np.full(rows, step % 4 == 3),
                np.zeros(rows, bool),
            )


@pytest.mark.parametrize("game", ["MountainCar-v0", "CartPole-v1", "CliffWalking-v1"])
def test_an_environment_that_its_owner_resets_is_not_suspected(game):
    """Also one without rewards, or with few starts and ends."""
    env = gymnasium.make(game, max_episode_steps=7)
    env.action_space.seed(0)
    memory = pser.ReplayMemory(1000, env.observation_space, env.action_space, seed=0)
    for _ in range(20):
        observation, _ = env.reset()
        over = False
        while not over:
            action = env.action_space.sample()
            following, _, terminated, truncated, _ = env.step(action)
            memory.add(observation, action, 0.0, following, terminated, truncated)
            observation, over = following, terminated or truncated


@pytest.mark.parametrize("num_envs", [1, 2])
def test_the_recorder_is_never_suspected(num_envs):
    from pser.collect import VectorRecorder

    envs = gymnasium.make_vec("CartPole-v1", num_envs=num_envs)
    memory = pser.ReplayMemory(
        1000, envs.single_observation_space, envs.single_action_space, num_envs, seed=0
    )
    recorder = VectorRecorder(envs, memory)
    recorder.reset(seed=0)
    for _ in range(150):
        recorder.step(envs.action_space.sample())
