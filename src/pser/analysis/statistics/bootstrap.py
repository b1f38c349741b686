"""How sure a number is: bootstrap intervals, resampling the runs of each task or the tasks themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import Scores, Statistic, mean_gain, probability_of_improvement
from pser.errors import PserError

FloatArray = NDArray[np.float64]

LEFT_OUT = 1
"""Runs that each draw has less than there are where results are told, so that intervals hold with three seeds."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value and its bootstrap interval."""

    value: float
    low: float
    high: float
    confidence: float

    @property
    def collapsed(self) -> bool:
        """Whether the interval is a point, as after a clean sweep of few seeds: then it says nothing."""
        return not self.low < self.high

    def excludes(self, null: float) -> bool:
        """Whether `null` lies outside the interval."""
        return not self.low <= null <= self.high


def stratified_resample(
    scores: Scores, resamples: int, rng: np.random.Generator, *, left_out: int = 0
) -> list[FloatArray]:
    """Runs drawn with replacement within each task, (resamples, runs) each (Agarwal et al. 2021, §4.1).

    With `left_out` = 1 a draw has one run less than its task: then n runs vary as much as n runs should, where as many
    draws as runs vary by (n − 1)/n of it, and make three seeds look surer than they are (Rao and Wu 1988). A task of
    one run gives that run, whatever is left out.
    """
    _check_resamples(resamples)
    drawn = [max(1, task.shape[-1] - left_out) for task in scores]
    return [
        task[rng.integers(0, task.shape[-1], size=(resamples, runs))]
        for task, runs in zip(scores, drawn, strict=True)
    ]


def stratified_interval(
    statistic: Statistic,
    scores: Scores,
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    left_out: int = 0,
) -> Estimate:
    """`statistic` of the scores with its stratified-bootstrap percentile interval.

    Agarwal et al. 2021, Section 4.1. It speaks of other seeds on these same tasks, not of other tasks.
    """
    draws = statistic(stratified_resample(scores, resamples, rng, left_out=left_out))
    return percentile_interval(float(statistic(scores)), draws, confidence)


def improvement_interval(
    x: Scores,
    y: Scores,
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    left_out: int = 0,
) -> Estimate:
    """Probability of improvement of x over y, both sides resampled independently within each task."""
    return _interval_between(probability_of_improvement, x, y, rng, resamples, confidence, left_out)


def gain_interval(
    x: Scores,
    y: Scores,
    scales: Sequence[float],
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    left_out: int = 0,
) -> Estimate:
    """By how much x's means exceed y's in units of each task's scale, both sides resampled independently."""
    gain = partial(mean_gain, scales=scales)
    return _interval_between(gain, x, y, rng, resamples, confidence, left_out)


def _interval_between(
    statistic: Callable[[Scores, Scores], FloatArray],
    x: Scores,
    y: Scores,
    rng: np.random.Generator,
    resamples: int,
    confidence: float,
    left_out: int,
) -> Estimate:
    sides = [stratified_resample(side, resamples, rng, left_out=left_out) for side in (x, y)]
    return percentile_interval(float(statistic(x, y)), statistic(*sides), confidence)


def task_resample(tasks: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Task numbers drawn with replacement, (resamples, tasks): for tables with one run a task.

    Index both algorithms' scores with the same draw, so that a comparison stays paired.
    """
    _check_resamples(resamples)
    return rng.integers(0, tasks, size=(resamples, tasks))


def percentile_interval(value: float, draws: FloatArray, confidence: float = 0.95) -> Estimate:
    """The central `confidence` share of bootstrap draws (Efron's percentile interval)."""
    if not 0.0 < confidence < 1.0:
        raise PserError(f"confidence lies between 0 and 1; got {confidence}: use e.g. 0.95")
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return Estimate(value=value, low=float(low), high=float(high), confidence=confidence)


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise PserError(f"a bootstrap needs at least one resample; got {resamples}: use 2000 or more")
