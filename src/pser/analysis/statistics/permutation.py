"""How often luck alone would separate two algorithms as far as their seeds are separated."""

from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import Scores, probability_of_improvement
from pser.errors import PserError

FloatArray = NDArray[np.float64]

EXACT_LIMIT = 20_000
"""Up to this many arrangements all are counted; beyond it they are sampled."""


def permutation_p_value(x: Scores, y: Scores, rng: np.random.Generator, *, permutations: int = 5000) -> float:
    """Two-sided p-value of the probability of improvement, the runs of each task shuffled between x and y.

    The null hypothesis is that within a task it does not matter which algorithm made a run. Exact where all
    arrangements can be counted; otherwise from `permutations` shuffles, of which the observed one is one.
    """
    if permutations < 1:
        raise PserError(
            f"a permutation test needs at least one shuffle; got {permutations}: use 1000 or more"
        )
    observed = abs(float(probability_of_improvement(x, y)) - 0.5)
    if arrangements(x, y) <= EXACT_LIMIT:
        return float((_exact(x, y) >= observed - 1e-12).mean())
    as_far = int((_sampled(x, y, rng, permutations) >= observed - 1e-12).sum())
    return (as_far + 1) / (permutations + 1)


def arrangements(x: Scores, y: Scores) -> int:
    """In how many ways the runs of every task can be dealt to the two sides: Π C(n + m, n).

    One in so many is the chance that luck alone lets every run of x beat every run of y: it bounds what these
    seeds can prove.
    """
    return prod(comb(len(a) + len(b), len(a)) for a, b in zip(x, y, strict=True))


def smallest_p_value(x: Scores, y: Scores) -> float:
    """The p-value of a clean sweep, one way or the other: what these seeds can prove at best."""
    return min(1.0, 2.0 / arrangements(x, y))


def _exact(x: Scores, y: Scores) -> FloatArray:
    """|P − ½| of every arrangement: each task's values, summed over all combinations of tasks."""
    totals = np.zeros(1)
    for a, b in zip(x, y, strict=True):
        totals = np.add.outer(totals, _task_values(np.concatenate([a, b]), len(a))).ravel()
    return np.asarray(np.abs(totals / len(x) - 0.5))


def _task_values(pooled: FloatArray, left: int) -> FloatArray:
    """Probability of improvement for each choice of `left` of the pooled runs."""
    chosen = np.array(list(combinations(range(len(pooled)), left)))
    mask = np.zeros((len(chosen), len(pooled)), dtype=bool)
    np.put_along_axis(mask, chosen, True, axis=1)
    others = np.array([np.flatnonzero(~row) for row in mask])
    return probability_of_improvement([pooled[chosen]], [pooled[others]])


def _sampled(x: Scores, y: Scores, rng: np.random.Generator, permutations: int) -> FloatArray:
    shuffled_x, shuffled_y = [], []
    for a, b in zip(x, y, strict=True):
        pooled = np.broadcast_to(np.concatenate([a, b]), (permutations, len(a) + len(b)))
        mixed = rng.permuted(pooled, axis=1)
        shuffled_x.append(mixed[:, : len(a)])
        shuffled_y.append(mixed[:, len(a) :])
    return np.asarray(np.abs(probability_of_improvement(shuffled_x, shuffled_y) - 0.5))
