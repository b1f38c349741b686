"""How many runs get there at all: a share of runs with its interval, and two shares compared.

Where a game is all or nothing (the first reward is met early, or never), a mean over seeds says little.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.bootstrap import Estimate
from pser.errors import PserError

FloatArray = NDArray[np.float64]


def share_above(scores: FloatArray, threshold: float, *, confidence: float = 0.95) -> Estimate:
    """The share of runs that end above `threshold` (that "take off"), with its exact interval."""
    return share_interval(int((scores > threshold).sum()), len(scores), confidence=confidence)


def share_interval(hits: int, runs: int, *, confidence: float = 0.95) -> Estimate:
    """hits / runs with the interval of Clopper and Pearson 1934: the shares that `hits` does not rule out.

    It holds the true share at least as often as it says, whatever that is, even with three runs; shorter
    intervals (Wilson's) fall short of their promise near 0 and 1.
    """
    if not 0 <= hits <= runs or runs == 0:
        raise PserError(f"hits lie between 0 and the runs; got {hits} of {runs}: give at least one run")
    if not 0.0 < confidence < 1.0:
        raise PserError(f"confidence lies between 0 and 1; got {confidence}: use e.g. 0.95")
    tail = (1.0 - confidence) / 2.0
    # P(at least `hits`) grows with the share, P(at most `hits`) falls: each end is where it meets the tail.
    low = 0.0 if hits == 0 else 1.0 - _share_at(runs - hits, runs, tail)
    high = 1.0 if hits == runs else _share_at(hits, runs, tail)
    return Estimate(value=hits / runs, low=low, high=high, confidence=confidence)


def share_p_value(hits_x: int, runs_x: int, hits_y: int, runs_y: int) -> float:
    """Two-sided p-value that two shares differ (Fisher's exact test).

    The null hypothesis is that it does not matter which algorithm made a run: of all ways to deal the hits to
    the two sides, the share that is no likelier than the one observed.
    """
    for hits, runs in ((hits_x, runs_x), (hits_y, runs_y)):
        if not 0 <= hits <= runs or runs == 0:
            raise PserError(f"hits lie between 0 and the runs; got {hits} of {runs}: give at least one run")
    hits = hits_x + hits_y
    fewest, most = max(0, hits - runs_y), min(hits, runs_x)
    ways = {k: comb(runs_x, k) * comb(runs_y, hits - k) for k in range(fewest, most + 1)}
    no_likelier = sum(way for way in ways.values() if way <= ways[hits_x])
    return no_likelier / sum(ways.values())


def _share_at(hits: int, runs: int, tail: float) -> float:
    """The share at which so few hits have probability `tail`, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if _at_most(hits, runs, middle) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _at_most(hits: int, runs: int, share: float) -> float:
    """P(at most `hits` of `runs`) under a binomial distribution."""
    return sum(comb(runs, k) * share**k * (1.0 - share) ** (runs - k) for k in range(hits + 1))
