"""Curves of the error over iterations: thinned for storage, averaged over seeds for figures."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Curve: TypeAlias = list[tuple[int, float]]
Floats: TypeAlias = NDArray[np.float64]


def thin_curve(mse: Sequence[float] | Floats, every: int, tolerance: float) -> Curve:
    """(iteration, MSE) at multiples of `every`, without those within `tolerance` (relative) of the last kept
    one.

    Between two kept points the error stays within the tolerance of the first. The first and last always stay.
    """
    kept: Curve = []
    for k, value in enumerate(mse):
        if not kept or abs(value - kept[-1][1]) > tolerance * kept[-1][1] or k == len(mse) - 1:
            kept.append((k * every, float(value)))
    return kept


def mean_curve(curves: Sequence[Curve], iterations: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """The geometric mean over runs at each iteration, and its 68% interval (one standard error each way).

    A run that has ended keeps its last error, which lies below the last threshold.
    """
    logs = np.array([np.log(_held(curve, iterations)) for curve in curves])
    mean = logs.mean(axis=0)
    error = logs.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros_like(mean)
    return np.exp(mean), np.exp(mean - error), np.exp(mean + error)


def _held(curve: Curve, iterations: NDArray[np.int64]) -> Floats:
    """The last recorded error at or before each iteration."""
    at = np.array([point[0] for point in curve])
    value = np.array([point[1] for point in curve])
    return np.asarray(value[np.searchsorted(at, iterations, side="right") - 1], dtype=np.float64)
