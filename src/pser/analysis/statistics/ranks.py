"""Ranks of methods over games."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def ranks(scores: ArrayLike) -> list[float]:
    """1 for the highest score; equals share the mean of their places."""
    values = np.asarray(scores, dtype=np.float64)
    above = (values[None, :] > values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return [float(rank) for rank in above + (equal + 1) / 2]


def mean_ranks(games: Sequence[Sequence[float]]) -> list[float]:
    """Mean over games of each method's rank; a row a game, a column a method."""
    return [float(rank) for rank in np.mean([ranks(row) for row in games], axis=0)]
