"""The kernel's gradient of the Huber loss against its equation in NumPy, without torch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pser import _kernel
from pser.errors import PserError


def drawn(batch, actions, seed):
    rng = np.random.default_rng(seed)
    values, targets = rng.normal(size=(batch, actions)), 2 * rng.normal(size=batch)
    floats = [array.astype(np.float32) for array in (values, targets, rng.random(batch))]
    return floats[0], rng.integers(0, max(actions, 1), batch), floats[1], floats[2]


@given(batch=st.integers(0, 40), actions=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_it_is_the_equation_to_the_bit(batch, actions, seed):
    values, action, targets, weights = drawn(batch, actions, seed)
    expected, rows = np.zeros_like(values), np.arange(batch)
    clipped = np.clip(targets - values[rows, action], np.float32(-1), np.float32(1))
    expected[rows, action] = clipped * weights * np.float32(-1 / max(batch, 1))
    out = np.full_like(values, np.nan)
    _kernel.huber_gradient(values, action, targets, weights, out)
    np.testing.assert_array_equal(out, expected)


def test_what_is_no_number_stays_none():
    values, action, targets, weights = drawn(2, 3, 0)
    targets[0] = np.nan
    out = np.zeros_like(values)
    _kernel.huber_gradient(values, action, targets, weights, out)
    assert np.isnan(out[0, action[0]])
    assert np.isfinite(out[1]).all()


@pytest.mark.parametrize("action", [-1, 3])
def test_an_action_that_there_is_not_is_refused(action):
    values, taken, targets, weights = drawn(4, 3, 0)
    taken[2] = action
    with pytest.raises(PserError, match=f"one of 3, got {action}"):
        _kernel.huber_gradient(values, taken, targets, weights, np.zeros_like(values))


def test_other_counts_are_refused():
    values, action, targets, weights = drawn(4, 3, 0)
    out = np.zeros_like(values)
    for wrong in (
        (values[:3], action, targets, weights, out),
        (values, action, targets[:3], weights, out),
        (values, action, targets, weights[:3], out),
        (values, action, targets, weights, out[:3]),
    ):
        with pytest.raises(PserError, match="match them"):
            _kernel.huber_gradient(*wrong)
