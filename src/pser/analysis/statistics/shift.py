"""By how much one algorithm scores above another, with an interval that few seeds do not make too narrow."""

from math import comb

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.bootstrap import Estimate
from pser.errors import PserError

FloatArray = NDArray[np.float64]


def shift(x: FloatArray, y: FloatArray) -> float:
    """The median of all differences between a run of x and one of y (Hodges and Lehmann 1963)."""
    return float(np.median(_differences(x, y)))


def shift_interval(x: FloatArray, y: FloatArray, *, confidence: float = 0.95) -> Estimate | None:
    """`shift` with its exact interval; None where so few seeds allow none (three against three at 95%).

    The interval holds the shifts that the permutation test of the probability of improvement (which is the
    test of Mann and Whitney) would not rule out: it leaves out 0 where that test finds a difference, and only
    there (ties apart).
    """
    if not 0.0 < confidence < 1.0:
        raise PserError(f"confidence lies between 0 and 1; got {confidence}: use e.g. 0.95")
    differences = np.sort(_differences(x, y).ravel())
    cut = _cut(len(x), len(y), (1.0 - confidence) / 2.0)
    if cut == 0:
        return None
    return Estimate(
        value=float(np.median(differences)),
        low=float(differences[cut - 1]),
        high=float(differences[-cut]),
        confidence=confidence,
    )


def win_counts(runs_x: int, runs_y: int) -> NDArray[np.float64]:
    """In how many arrangements of the runs x wins u of all runs_x·runs_y pairs, for u = 0, 1, …

    Counted by the run that is best of all: if it is x's it wins runs_y pairs, if it is y's none
    (Mann and Whitney 1947).
    """
    counts = np.zeros((runs_x + 1, runs_y + 1, runs_x * runs_y + 1))
    counts[0, :, 0] = counts[:, 0, 0] = 1.0
    for n in range(1, runs_x + 1):
        for m in range(1, runs_y + 1):
            counts[n, m] = counts[n, m - 1]
            counts[n, m, m:] += counts[n - 1, m, : counts.shape[2] - m]
    return np.asarray(counts[runs_x, runs_y])


def _cut(runs_x: int, runs_y: int, tail: float) -> int:
    """How many differences may be dropped at each end."""
    chances = np.cumsum(win_counts(runs_x, runs_y)) / comb(runs_x + runs_y, runs_x)
    return int(np.searchsorted(chances, tail * (1.0 + 1e-12), side="right"))


def _differences(x: FloatArray, y: FloatArray) -> FloatArray:
    if len(x) == 0 or len(y) == 0:
        raise PserError(f"both sides need at least one run; got {len(x)} and {len(y)}: leave the pair out")
    return np.subtract.outer(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
