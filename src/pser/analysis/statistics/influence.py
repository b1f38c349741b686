"""What single games do to an aggregate, and what the mere number of wins says."""

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Games won, tied and lost by one algorithm against another."""

    wins: int
    ties: int
    losses: int


def tally(new: FloatArray, base: FloatArray) -> Tally:
    """Count the games where `new` scores higher, the same, lower."""
    return Tally(wins=int((new > base).sum()), ties=int((new == base).sum()), losses=int((new < base).sum()))


def sign_test(count: Tally) -> float:
    """Two-sided exact sign test: how often fair coins would split the untied games at least so unevenly.

    Under the null hypothesis the two algorithms score alike in every game, so that each untied game is a coin
    toss; it holds for single runs too, and says nothing about the size of the difference.
    """
    games = count.wins + count.losses
    if games == 0:
        return 1.0
    fewer = min(count.wins, count.losses)
    tail = sum(comb(games, k) for k in range(fewer + 1)) / (1 << games)
    return min(1.0, 2.0 * tail)


def leave_one_out_means(values: FloatArray) -> FloatArray:
    """The mean of the other values, for each value left out."""
    return np.asarray((values.sum() - values) / (len(values) - 1))


def shares_of_mean(values: FloatArray) -> FloatArray:
    """How much of the mean each value carries: value / sum; negative values pull the other way."""
    return np.asarray(values / values.sum())
