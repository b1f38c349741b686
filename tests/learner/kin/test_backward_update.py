"""The episodic backward update against its recursion, and against what it must become at the ends of β."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pser.learner.kin.targets import backward_targets


def slow_target(t, reward, discount, action, q_next, beta):
    """y_t by recursion, from a fresh copy of Q(s_{t+1}, ·)."""
    values = list(q_next[t])
    if t + 1 < len(reward):
        taken = action[t + 1]
        later = slow_target(t + 1, reward, discount, action, q_next, beta)
        values[taken] = beta * later + (1 - beta) * values[taken]
    return reward[t] + discount[t] * max(values)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_targets_follow_the_recursion(length, seed, beta):
    rng = np.random.default_rng(seed)
    reward, discount = rng.normal(size=length), np.full(length, 0.9)
    discount[-1] = rng.integers(2) * 0.9
    action, q_next = rng.integers(3, size=length), rng.normal(size=(length, 3))
    found = backward_targets(reward, discount, action, q_next.copy(), beta)
    slow = [slow_target(t, reward, discount, action, q_next, beta) for t in range(length)]
    np.testing.assert_allclose(found, slow, rtol=1e-9, atol=1e-9)


def test_beta_zero_is_plain_q_learning_and_one_carries_a_reward_all_the_way():
    reward, action = np.array([0.0, 0.0, 1.0]), np.array([0, 1, 0])
    discount, q_next = np.array([0.5, 0.5, 0.0]), np.zeros((3, 2))
    assert backward_targets(reward, discount, action, q_next, 0.0).tolist() == [0.0, 0.0, 1.0]
    assert backward_targets(reward, discount, action, q_next, 1.0).tolist() == [0.25, 0.5, 1.0]
    assert backward_targets(reward, discount, action, q_next, 0.5) == pytest.approx([0.0625, 0.25, 1.0])
