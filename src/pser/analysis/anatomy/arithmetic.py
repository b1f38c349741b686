"""Which source rules a priority: insertion, η's retention, the own TD error, or backward decay.

A transition is replayed at a rate proportional to its mass. So the mass held by transitions in some state, summed
over their lives, is to all mass as the replays that start in that state are to all replays. With K replays a life,
counting replays is counting mass.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
QUANTILES = 1_000
"""Equally likely TD errors that stand for a distribution."""


@dataclass(frozen=True, kw_only=True)
class Surprises:
    """A synthetic distribution of |δ|, in units of the largest priority ever (p_max = 1)."""

    median: float = 0.05
    """Median of a transition's |δ| at its first replay."""
    spread: float = 1.0
    """Standard deviation of ln |δ|."""
    reward_share: float = 0.015
    """Share of the steps that bring a reward, and with it a surprise of its own size."""
    reward_size: float = 1.0
    """Median |δ| of these steps."""
    shrink: float = 0.95
    """What a replay leaves of |δ|."""

    def draw(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.bool_]]:
        """First |δ| of `count` steps, at most 1, and which of them bring a reward."""
        rewarded = rng.random(count) < self.reward_share
        size = np.where(rewarded, self.reward_size, self.median)
        spread = np.where(rewarded, 0.25, self.spread)
        return np.minimum(size * np.exp(spread * rng.standard_normal(count)), 1.0), rewarded


def replays_a_life(batch_size: int, update_period_steps: int) -> float:
    """K: how often a transition is drawn on average before it is overwritten, whatever the capacity."""
    return batch_size / update_period_steps


def ruled_for_life(eta: float, replays: float) -> float:
    """|δ| / p_max below which insertion rules a whole life: η^K."""
    return float(eta**replays)


def decay_reach(surprise: float, eta: float, rho: float, replays: float) -> float:
    """Steps that a surprise (in units of p_max) is felt back at the end of a life ruled by insertion.

    The priority there is η^K, and ρ^l·δ exceeds it for l < [K·ln(1/η) − ln(1/δ)] / ln(1/ρ).
    """
    if rho <= 0.0 or surprise <= 0.0:
        return 0.0
    if eta <= 0.0 or rho >= 1.0:
        return math.inf
    return max(0.0, (replays * math.log(1.0 / eta) - math.log(1.0 / surprise)) / math.log(1.0 / rho))


def shrinking_insertion_share(surprises: Surprises, eta: float, replays: float, seed: int = 0) -> float:
    """Share of the mass that insertion rules, its retention by η included (MaxPrio), |δ| shrinking with each replay.

    After k replays the priority is max(|δ|, η^k), so insertion rules as long as η^k > |δ|. The first replay of all
    starts from insertion whatever |δ| is.
    """
    td, _ = surprises.draw(QUANTILES * 20, np.random.default_rng(seed))
    most = math.ceil(replays)
    ruled = np.ones(len(td))
    still = np.ones(len(td), dtype=bool)
    for k in range(1, most):  # the (k+1)-th replay starts from insertion if η^k exceeds |δ| all the way there
        still &= eta**k > td * surprises.shrink ** (k - 1)
        ruled += still
    return float(np.minimum(ruled, replays).mean() / replays)
