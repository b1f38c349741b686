"""Whether scores rise with a setting that has an order, such as an exponent."""

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import Scores
from pser.errors import PserError

FloatArray = NDArray[np.float64]


def probability_of_rise(levels: Scores, scores: Scores) -> FloatArray:
    """That of two runs on one task with different levels, the one with the higher level scores higher; mean over tasks.

    Terpstra 1952, Jonckheere 1954 (their statistic over its largest value); equal scores count half. `scores` may have
    leading axes. With two levels it is the probability of improvement.
    """
    return np.asarray(np.mean([_of_task(*task) for task in zip(levels, scores, strict=True)], axis=0))


def _of_task(levels: FloatArray, scores: FloatArray) -> FloatArray:
    lower, higher = np.nonzero(levels[:, np.newaxis] < levels)
    if not len(lower):
        raise PserError(f"a rise needs two levels; got {levels.tolist()}: leave that task out")
    low, high = scores[..., lower], scores[..., higher]
    return np.asarray((high > low).mean(axis=-1) + 0.5 * (high == low).mean(axis=-1))


def rise_p_value(
    levels: Scores, scores: Scores, rng: np.random.Generator, *, permutations: int = 5000
) -> float:
    """Two-sided p-value of the probability of rise, the scores of each task shuffled between its runs."""
    observed = abs(float(probability_of_rise(levels, scores)) - 0.5)
    shuffled = [rng.permuted(np.broadcast_to(task, (permutations, len(task))), axis=1) for task in scores]
    distance = np.abs(probability_of_rise(levels, shuffled) - 0.5)
    return (int((distance >= observed - 1e-12).sum()) + 1) / (permutations + 1)
