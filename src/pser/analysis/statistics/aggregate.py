"""Scores of many runs on many tasks as one number (Agarwal et al. 2021, "Deep RL at the Edge of the
Statistical Precipice").

`Scores` is one array a task, the runs on its last axis; tasks may have different numbers of runs. Any leading
axes are kept, so that one call evaluates all bootstrap resamples at once.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pser.errors import PserError

FloatArray = NDArray[np.float64]
Scores = Sequence[FloatArray]
Statistic = Callable[[Scores], FloatArray]


def mean(scores: Scores) -> FloatArray:
    """Mean over tasks of each task's mean over runs (Agarwal et al. 2021, Section 4.3)."""
    return np.asarray(_task_means(scores).mean(axis=-1))


def median(scores: Scores) -> FloatArray:
    """Median over tasks of each task's mean over runs (Agarwal et al. 2021, Section 4.3)."""
    return np.asarray(np.median(_task_means(scores), axis=-1))


def iqm(scores: Scores) -> FloatArray:
    """Interquartile mean: mean of the middle half of all runs of all tasks.

    Agarwal et al. 2021, Section 4.3. A quarter of the values, rounded down, is dropped at each end.
    """
    pooled = np.sort(_pooled(scores), axis=-1)
    count = pooled.shape[-1]
    cut = count // 4
    return np.asarray(pooled[..., cut : count - cut].mean(axis=-1))


def optimality_gap(scores: Scores, target: float = 1.0) -> FloatArray:
    """How far the runs fall short of `target` on average: target − mean(min(score, target)).

    Agarwal et al. 2021, Section 4.3; with human-normalised scores the target 1 is human play. Less is better.
    """
    clipped = np.minimum(_pooled(scores), target)
    return np.asarray(target - clipped.mean(axis=-1))


def probability_of_improvement(x: Scores, y: Scores) -> FloatArray:
    """P(X > Y) + ½·P(X = Y) for a run of each on one task, averaged over tasks.

    Agarwal et al. 2021, Section 4.3 (the Mann–Whitney U statistic over its largest value).
    """
    _check_matched(x, y)
    per_task = [_task_probability(a, b) for a, b in zip(x, y, strict=True)]
    return np.asarray(np.stack(per_task, axis=-1).mean(axis=-1))


def mean_gain(x: Scores, y: Scores, scales: Sequence[float]) -> FloatArray:
    """By how much x's mean over runs exceeds y's, in units of each task's scale; averaged over tasks."""
    _check_matched(x, y)
    return np.asarray(((_task_means(x) - _task_means(y)) / np.asarray(scales)).mean(axis=-1))


def performance_profile(scores: Scores, thresholds: FloatArray) -> FloatArray:
    """Share of all runs with a score above each threshold, on the last axis (Agarwal et al. 2021, Eq. 1)."""
    pooled = _pooled(scores)
    return np.asarray((pooled[..., :, np.newaxis] > thresholds).mean(axis=-2))


def _task_probability(a: FloatArray, b: FloatArray) -> FloatArray:
    left, right = a[..., :, np.newaxis], b[..., np.newaxis, :]
    return np.asarray((left > right).mean(axis=(-2, -1)) + 0.5 * (left == right).mean(axis=(-2, -1)))


def _task_means(scores: Scores) -> FloatArray:
    _check(scores)
    return np.stack([task.mean(axis=-1) for task in scores], axis=-1)


def _pooled(scores: Scores) -> FloatArray:
    _check(scores)
    return np.concatenate(list(scores), axis=-1)


def _check_matched(x: Scores, y: Scores) -> None:
    if len(x) != len(y):
        raise PserError(f"both sides need the same tasks; got {len(x)} and {len(y)}: drop the unmatched ones")
    _check(x)
    _check(y)


def _check(scores: Scores) -> None:
    if len(scores) == 0:
        raise PserError("an aggregate needs at least one task; got none: give scores")
    for index, task in enumerate(scores):
        if task.shape[-1] == 0:
            raise PserError(f"each task needs at least one run; task {index} has none: leave it out")
        if np.isnan(task).any():
            raise PserError(f"scores must be numbers; task {index} holds NaN: leave that run out")
