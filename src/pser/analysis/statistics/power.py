"""What a number of runs can show: the smallest true difference that is mostly found, and how many runs one takes."""

from collections.abc import Sequence
from functools import cache
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.errors import PserError

FloatArray = NDArray[np.float64]

MOSTLY = 0.8
"""The share of studies that should find a difference, as power is usually asked for."""
CERTAIN = 0.999
"""A probability of improvement that stands for 1: every run of one side above nearly every one of the other."""
MANY = 100
"""Seeds of an arm on a game that nobody runs."""
NULL_DRAWS, DRAWS, STEPS = 20_000, 2_000, 10


@cache
def smallest_shown(
    counts: tuple[tuple[int, int], ...], level: float, share: float = MOSTLY, seed: int = 0
) -> float | None:
    """The probability of improvement that comes out with p below `level` in `share` of studies; None if none does.

    `counts` are the runs of the two sides on each task. Scores are normal with the same spread on both sides, and the
    difference is the same on every task; ranks are all that counts, so any other scale gives the same. By simulation:
    about ±0.01.
    """
    if not counts or any(min(pair) < 1 for pair in counts):
        raise PserError(f"each task needs runs of both sides; got {counts}: leave the others out")
    if not 0 < level < 1 or not 0 < share < 1:
        raise PserError(f"level and share lie between 0 and 1; got {level} and {share}: use 0.05 and 0.8")
    rng = np.random.default_rng(seed)
    null = np.sort(np.abs(_Draws(counts, rng, NULL_DRAWS).improvement(0.0) - 0.5))
    drawn = _Draws(counts, rng, DRAWS)

    def power(probability: float) -> float:
        # Φ(d/√2) is the probability that a normal with its mean d higher comes out the higher.
        shift = NormalDist().inv_cdf(probability) * 2**0.5
        distance = np.abs(drawn.improvement(shift) - 0.5)
        as_far = len(null) - np.searchsorted(null, distance - 1e-12)
        return float((as_far / len(null) < level).mean())

    low, high = 0.5, CERTAIN
    if power(high) < share:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= share else (middle, high)
    return high


def seeds_needed(probability: float, games: int, level: float, share: float = MOSTLY) -> int:
    """About how many runs of each side, on each of so many games, mostly show a true probability of improvement.

    By normal approximation: Mann and Whitney's variance where nothing differs, and where something does that of
    Hanley and McNeil (1982), which needs to know nothing of the scores but this probability.
    """
    distance = abs(probability - 0.5)
    if games < 1 or not 0 < distance <= 0.5:
        raise PserError(
            f"a difference to be shown needs a game and a probability other than 0.5, up to 1; got {games} games and "
            f"{probability}: name another"
        )
    theta = 0.5 + distance
    both = theta / (2 - theta) + 2 * theta**2 / (1 + theta) - 2 * theta**2
    unlikely, mostly = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(share)

    def is_enough(runs: int) -> bool:
        level_spread = sqrt((2 * runs + 1) / (12 * runs**2 * games))
        spread = sqrt((theta * (1 - theta) + (runs - 1) * both) / (runs**2 * games))
        return distance >= unlikely * level_spread + mostly * spread

    enough = 1
    while not is_enough(enough):
        enough *= 2
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


def about(seeds: int) -> str:
    """How many seeds are needed, in words."""
    return f"about {seeds}" if seeds <= MANY else f"more than {MANY}"


class _Draws:
    """Scores of many studies that have no difference, to be shifted."""

    def __init__(self, counts: Sequence[tuple[int, int]], rng: np.random.Generator, draws: int) -> None:
        self.x = [rng.standard_normal((draws, left)) for left, _ in counts]
        self.y = [rng.standard_normal((draws, right)) for _, right in counts]

    def improvement(self, shift: float) -> FloatArray:
        """The probability of improvement in each, with x higher by `shift`."""
        return probability_of_improvement([x + shift for x in self.x], self.y)
