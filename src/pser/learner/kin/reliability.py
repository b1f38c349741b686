"""How reliable the targets of an episode are (Pleiss, Sutter and Schiffer 2025, arXiv 2506.18482)."""

import numpy as np
from numpy.typing import NDArray

from pser.learner.kin.rules import ReaPER

Reals = NDArray[np.float64]


def reliability(sizes: Reals) -> Reals:
    """R_t = 1 − Σ_{i>t} |δ_i| / Σ_i |δ_i| of one episode; all 1 if nothing surprises."""
    total = sizes.sum()
    if total <= 0.0:
        return np.ones_like(sizes)
    return np.asarray(np.cumsum(sizes) / total)


def raw_priorities(sizes: Reals, rule: ReaPER) -> Reals:
    """p with p^α = |δ|^α·R^ω, for the transitions of one episode."""
    return np.asarray(sizes * reliability(sizes) ** (rule.omega / rule.alpha))
