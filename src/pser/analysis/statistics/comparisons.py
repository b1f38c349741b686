"""Many comparisons at once: one of twenty is significant at 0.05 by luck alone."""

from collections.abc import Sequence

import numpy as np

from pser.errors import PserError

SHOWN = 0.05
"""Corrected p-values below this call a difference shown."""


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, in the order given (Holm 1979, "A simple sequentially rejective …").

    Calling those below 0.05 significant is wrong in at most one of twenty whole families, however the
    comparisons depend on each other. The smallest is multiplied by their number, the next by one less, and so
    on; none may fall below one before it.
    """
    values = np.asarray(p_values, dtype=np.float64)
    if np.isnan(values).any() or (values < 0).any() or (values > 1).any():
        raise PserError(
            f"a p-value lies between 0 and 1; got {list(p_values)}: leave out what was not tested"
        )
    order = np.argsort(values, kind="stable")
    steps = np.minimum(1.0, (len(values) - np.arange(len(values))) * values[order])
    corrected = np.empty(len(values))
    corrected[order] = np.maximum.accumulate(steps)
    return [float(value) for value in corrected]
