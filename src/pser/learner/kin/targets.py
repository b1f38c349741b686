"""The targets of the episodic backward update: the equation without a network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]


def backward_targets(reward: Reals, discount: Reals, action: Ints, q_next: Reals, diffusion: float) -> Reals:
    """y_t of an episode, t in order of time (Lee et al. 2019, Algorithm 2); q_next holds Q(s_{t+1}, ·)."""
    values = q_next.copy()
    targets = np.empty_like(reward)
    for t in range(len(reward) - 1, -1, -1):
        if t + 1 < len(reward):
            taken = action[t + 1]
            values[t, taken] = diffusion * targets[t + 1] + (1.0 - diffusion) * values[t, taken]
        targets[t] = reward[t] + discount[t] * values[t].max()
    return targets
