"""Evaluation plays whole episodes, and as many as it was asked for."""

import numpy as np
import pytest

from pser.env.game import Step
from pser.learner.evaluation import Evaluation, evaluate


class Uneven:
    """Environment e plays episodes of e + 1 steps that return e + 1."""

    frames_per_step = 4

    def __init__(self, num_envs):
        self.num_envs, self.count = num_envs, np.zeros(num_envs, np.int64)

    def reset(self, seed=None):
        self.count[:] = 0
        return np.zeros((self.num_envs, 1), np.float32)

    def step(self, actions):
        self.count += 1
        done = self.count == np.arange(self.num_envs) + 1
        returns, lengths = np.where(done, self.count, np.nan), np.where(done, self.count, 0)
        self.count[done] = 0
        seen, no = np.zeros((self.num_envs, 1), np.float32), np.zeros(self.num_envs, bool)
        return Step(np.ones(self.num_envs), seen, done, no, seen, done, returns, lengths)


class Idle:
    def act(self, observation, epsilon, rng):
        return np.zeros(len(observation), np.int64)


def test_each_environment_has_its_share_so_short_episodes_are_not_favoured():
    result = evaluate(Idle(), Uneven(3), epsilon=0.0, seed=0, episodes=7)
    assert sorted(result.returns) == [1, 1, 1, 2, 2, 3, 3]
    assert result.lengths == [int(value) for value in result.returns]


def test_a_budget_of_frames_is_spent_and_running_episodes_are_finished():
    result = evaluate(Idle(), Uneven(3), epsilon=0.0, seed=0, frames=4 * 3 * 4)  # 4 steps of each
    assert sorted(result.returns) == [1, 1, 1, 1, 2, 2, 3, 3]


def test_summary_is_of_the_returns():
    summary = Evaluation([1.0, 2.0, 6.0], [10, 20, 60]).summary()
    assert summary == {
        "episodes": 3,
        "mean_return": 3.0,
        "median_return": 2.0,
        "std_return": pytest.approx(np.std([1, 2, 6])),
        "min_return": 1.0,
        "max_return": 6.0,
        "mean_length": 30.0,
    }


def test_every_step_tells_the_frames_played():
    seen = []
    evaluate(Idle(), Uneven(3), epsilon=0.0, seed=0, frames=48, on_step=seen.append)
    assert seen[:2] == [12, 24]
    assert seen[-1] == 12 * len(seen)
