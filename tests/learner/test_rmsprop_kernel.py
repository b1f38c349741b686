"""The kernel's RMSProp against its equations in NumPy, without torch."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser import _kernel


@given(
    size=st.integers(0, 70),
    centered=st.booleans(),
    momentum=st.sampled_from([0.0, 0.9]),
    decay=st.floats(0.1, 0.99),  # near 0 the spread of a centered rule is rounding alone
    eps_in_sqrt=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_step_equals_the_equations(size, centered, momentum, decay, eps_in_sqrt, seed):
    rng = np.random.default_rng(seed)
    theta, square = np.zeros(size, np.float32), np.zeros(size, np.float32)
    mean = np.zeros(size, np.float32) if centered else None
    velocity = np.zeros(size, np.float32) if momentum else None
    rule = {
        "learning_rate": 0.01,
        "decay": decay,
        "momentum": momentum,
        "eps": 0.1,
        "eps_in_sqrt": eps_in_sqrt,
    }
    wide = {name: np.zeros(size) for name in ("theta", "square", "mean", "velocity")}
    for _ in range(5):
        gradient = rng.normal(size=size).astype(np.float32)
        _kernel.rmsprop(theta, gradient, square, mean, velocity, **rule)
        wide["square"] = decay * wide["square"] + (1 - decay) * gradient.astype(np.float64) ** 2
        if centered:
            wide["mean"] = decay * wide["mean"] + (1 - decay) * gradient
        spread = np.maximum(wide["square"] - wide["mean"] ** 2, 0.0)
        divisor = np.sqrt(spread + 0.1) if eps_in_sqrt else np.sqrt(spread) + 0.1
        wide["velocity"] = momentum * wide["velocity"] + 0.01 * gradient / divisor
        wide["theta"] -= wide["velocity"]
    np.testing.assert_allclose(theta, wide["theta"], rtol=1e-3, atol=1e-5)


def test_averages_of_another_length_are_refused():
    values, short = np.zeros(4, np.float32), np.zeros(3, np.float32)
    rule = {"learning_rate": 0.1, "decay": 0.9, "eps": 1e-5, "eps_in_sqrt": True, "momentum": 0.0}
    with pytest.raises(pser.PserError, match="same length"):
        _kernel.rmsprop(values, values.copy(), short, None, None, **rule)


def test_every_instruction_set_gives_the_same_bits():
    program = """
import hashlib, numpy as np
from pser import _kernel
rng = np.random.default_rng(0)
theta, square, mean, velocity = (np.zeros(1003, np.float32) for _ in range(4))
for _ in range(30):
    gradient = rng.normal(size=1003).astype(np.float32)
    _kernel.rmsprop(
        theta, gradient, square, mean, velocity,
        learning_rate=0.01, decay=0.95, eps=1e-5, eps_in_sqrt=True, momentum=0.5,
    )
print(hashlib.sha256(theta.tobytes() + velocity.tobytes()).hexdigest())
"""
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for environment in (os.environ | {"PSER_PORTABLE": "1"}, dict(os.environ))
    ]
    assert printed[0] == printed[1]
