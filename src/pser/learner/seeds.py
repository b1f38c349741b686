"""One seed for a run, from which every source of randomness gets its own."""

import numpy as np

PURPOSES = ("network", "memory", "exploration", "game", "evaluation", "replay", "noise")
"""Who draws; the position is part of the seed, so new purposes go to the end."""


def derived_seed(seed: int, purpose: str, number: int = 0) -> int:
    """A 31-bit seed for one purpose (and one repetition of it) of the run with the given seed."""
    state = np.random.SeedSequence([seed, PURPOSES.index(purpose), number]).generate_state(1)
    return int(state[0] >> 1)


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """A random generator for one purpose of the run with the given seed."""
    return np.random.default_rng(derived_seed(seed, purpose, number))
