"""How two scores of one game are compared: normalised, as a percent change, as a relative difference."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def human_normalised(score: ArrayLike, random: ArrayLike, human: ArrayLike) -> FloatArray:
    """(score − random) / |human − random|: 0 is random play, 1 is human play.

    Brittain et al. 2019, appendix "Normalization"; the same as Schaul et al. 2016.
    """
    s, r, h = (np.asarray(x, dtype=np.float64) for x in (score, random, human))
    return _ratio(s - r, np.abs(h - r))


def percent_change(new: ArrayLike, base: ArrayLike) -> FloatArray:
    """100·(new − base) / base, to the letter (Brittain et al. 2019, appendix "Full results").

    A negative base turns the sign round and a zero base leaves it undefined (NaN): see
    `signed_percent_change` for the repaired form.
    """
    n, b = np.asarray(new, dtype=np.float64), np.asarray(base, dtype=np.float64)
    return 100.0 * _ratio(n - b, b)


def signed_percent_change(new: ArrayLike, base: ArrayLike) -> FloatArray:
    """100·(new − base) / |base|: positive exactly where `new` is the better score; NaN at base 0."""
    n, b = np.asarray(new, dtype=np.float64), np.asarray(base, dtype=np.float64)
    return 100.0 * _ratio(n - b, np.abs(b))


def symmetric_difference(new: ArrayLike, base: ArrayLike) -> FloatArray:
    """100·(new − base) / mean(|new|, |base|), between −200 and 200; NaN where both are 0."""
    n, b = np.asarray(new, dtype=np.float64), np.asarray(base, dtype=np.float64)
    return 100.0 * _ratio(n - b, (np.abs(n) + np.abs(b)) / 2.0)


def baseline_difference(new: ArrayLike, base: ArrayLike, random: ArrayLike, human: ArrayLike) -> FloatArray:
    """100·(new − base) / (max(human, base) − random), the improvement measure of Wang et al. 2016."""
    n, b, r, h = (np.asarray(x, dtype=np.float64) for x in (new, base, random, human))
    return 100.0 * _ratio(n - b, np.maximum(h, b) - r)


def min_max_normalised(values: ArrayLike, low: float, high: float) -> FloatArray:
    """(value − low) / (high − low), the ablation figure's scale (Brittain et al. 2019, Fig. 6 and appendix).

    If nothing ever differed (high = low) every value is 0.5: there is no scale to place it on.
    """
    v = np.asarray(values, dtype=np.float64)
    if high == low:
        return np.asarray(np.where(np.isnan(v), np.nan, 0.5))
    return np.asarray((v - low) / (high - low))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Division with NaN, and no warning, where the denominator is 0."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=out, where=denominator != 0))
