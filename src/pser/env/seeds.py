"""Seeds of environments, drawn from the seed of a run."""

import numpy as np


def spread_seed(seed: int, *path: int) -> int:
    """A 31-bit seed that depends on all its arguments, so that runs and environments share no random numbers."""
    return int(np.random.SeedSequence((seed, *path)).generate_state(1)[0]) >> 1
