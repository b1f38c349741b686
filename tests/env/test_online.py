"""Sparse tasks as a network plays them."""

import gymnasium
import numpy as np
import pytest

import pser.env  # noqa: F401 (registers the tasks)
from pser.env.make import make_game


@pytest.mark.parametrize("task", ["OnlineCliffwalk8-v0", "MiniGrid-Empty-8x8-v0", "MiniGrid-DoorKey-5x5-v0"])
def test_every_observation_lies_in_the_declared_space(task):
    if task.startswith("MiniGrid"):
        pytest.importorskip("minigrid")
    env = gymnasium.make(f"pser/{task}")  # its own checker wraps it
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(50):
        assert observation in env.observation_space
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            observation, _ = env.reset()


def test_the_state_of_the_chain_is_a_unit_vector():
    game = make_game("gym:pser/OnlineCliffwalk6-v0", num_envs=1)
    assert game.reset(0).tolist() == [[1, 0, 0, 0, 0, 0]]
    step = game.step(
        np.array([gymnasium.make("pser/BlindCliffwalk-v0", states=6).unwrapped.right_actions[0]])
    )
    assert step.next_observation.tolist() == [[0, 1, 0, 0, 0, 0]]


def test_what_minigrid_shows_is_scaled_to_one():
    pytest.importorskip("minigrid")
    game = make_game("gym:pser/MiniGrid-DoorKey-5x5-v0", num_envs=1)
    observation = game.reset(0)
    assert observation.shape == (1, 151)
    assert 0 <= observation.min() <= observation.max() <= 1
    assert observation[0, -4:].sum() == 1
