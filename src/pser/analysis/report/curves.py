"""Learning curves: smoothing as the paper's, seeds laid on one axis, a band around their mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pser.analysis.report.runs import Series
from pser.errors import PserError

FloatArray = NDArray[np.float64]

PAPER_SMOOTHING_SHARE = 0.05
"""The paper averages over 10M of 200M frames; other lengths are smoothed over the same share of theirs."""

MAX_POINTS = 400
"""More points than this on a curve are thinned evenly: a screen shows no more."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Mean over seeds at each point, with the band and the number of seeds that get there; NaN if none."""

    label: str
    frames: FloatArray
    mean: FloatArray
    low: FloatArray
    """The lowest seed."""
    high: FloatArray
    """The highest seed."""
    count: NDArray[np.int64]
    seeds: int
    lines: dict[str, FloatArray]
    """Each run's own curve, by its name."""


def smoothing_window(lengths: Sequence[float], frames: float | None = None) -> float:
    """The window in frames: as given, or the paper's share of the longest run (10M frames of 200M)."""
    if frames is not None:
        if frames < 0:
            raise PserError(f"a smoothing window is not negative; got {frames}: use 0 for none")
        return frames
    return PAPER_SMOOTHING_SHARE * max(lengths, default=0.0)


def moving_average(points: Series, window_frames: float) -> Series:
    """Mean of the points in (f − window, f] at each point f (Brittain et al. 2019, Fig. 6 and appendix)."""
    if window_frames <= 0 or len(points) == 0:
        return points
    sums = np.concatenate([[0.0], np.cumsum(points.values)])
    ends = np.arange(1, len(points) + 1)
    starts = np.searchsorted(points.frames, points.frames - window_frames, side="right")
    return Series(points.frames, (sums[ends] - sums[starts]) / (ends - starts))


def shared_frames(curves: Sequence[Series], max_points: int = MAX_POINTS) -> FloatArray:
    """All frames at which any of the curves has a point, thinned evenly to `max_points`."""
    used = [points.frames for points in curves if len(points)]
    if not used:
        return np.empty(0)
    union = np.unique(np.concatenate(used))
    if len(union) <= max_points:
        return union
    keep = np.unique(np.linspace(0, len(union) - 1, max_points).round().astype(np.int64))
    return np.asarray(union[keep])


def on_frames(points: Series, frames: FloatArray) -> FloatArray:
    """The curve at `frames`, linear between its points; NaN before its first and after its last."""
    if len(points) == 0:
        return np.full(len(frames), np.nan)
    return np.interp(frames, points.frames, points.values, left=np.nan, right=np.nan)


def over_seeds(label: str, seeds: Mapping[str, Series], frames: FloatArray) -> Curve | None:
    """Mean and range of the seeds that have a value at each of `frames`; None if no seed has any."""
    lines = {name: on_frames(points, frames) for name, points in seeds.items() if len(points)}
    if not lines:
        return None
    stacked = np.stack(list(lines.values()))
    count = np.isfinite(stacked).sum(axis=0)
    reached = count > 0
    mean, low, high = (np.full(len(frames), np.nan) for _ in range(3))
    mean[reached] = np.nanmean(stacked[:, reached], axis=0)
    low[reached] = np.nanmin(stacked[:, reached], axis=0)
    high[reached] = np.nanmax(stacked[:, reached], axis=0)
    return Curve(
        label=label, frames=frames, mean=mean, low=low, high=high, count=count, seeds=len(lines), lines=lines
    )
