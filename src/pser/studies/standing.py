"""Which arm to take: mean ranks over a study's games, and how often each arm would come out first."""

from dataclasses import dataclass

import numpy as np

from pser.analysis.markdown import table
from pser.analysis.statistics.bootstrap import LEFT_OUT, Estimate, percentile_interval, stratified_resample
from pser.analysis.statistics.ranks import mean_ranks
from pser.studies.results import RESAMPLES, SEED, Results
from pser.studies.study import Arm

FEWEST_ARMS, FEWEST_RUNS = 3, 2
LIKELY_FIRST = 0.05
"""An arm that comes out first less often than this is not named among those that may be best."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One arm among the others of its study."""

    arm: Arm
    rank: Estimate
    """Mean over games of the place of its mean, 1 for the highest."""
    first: float
    """Share of the resamples of the runs in which no other arm has a better mean rank; those that tie share it."""


def standings(results: Results) -> list[Standing]:
    """The arms of a study that compares, from the best mean rank on.

    None as long as an arm lacks two runs on a game, and none of fewer than three arms.
    """
    arms, games = results.study.arms, results.study.games
    cells = [[results.cells[game.env, arm.name].values for arm in arms] for game in games]
    if not results.study.contrasts or len(arms) < FEWEST_ARMS:
        return []
    if any(len(values) < FEWEST_RUNS for row in cells for values in row):
        return []
    rng = np.random.default_rng(SEED)
    means = np.array(
        [
            [one.mean(axis=1) for one in stratified_resample(row, RESAMPLES, rng, left_out=LEFT_OUT)]
            for row in cells
        ]
    )  # [games, arms, resamples]
    drawn = np.array([mean_ranks(means[:, :, number].tolist()) for number in range(RESAMPLES)])
    is_first = drawn == drawn.min(axis=1, keepdims=True)
    first = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0)
    ranks = mean_ranks([[float(values.mean()) for values in row] for row in cells])
    found = [
        Standing(arm=arm, rank=percentile_interval(rank, drawn[:, number], 0.95), first=float(first[number]))
        for number, (arm, rank) in enumerate(zip(arms, ranks, strict=True))
    ]
    return sorted(found, key=lambda standing: standing.rank.value)


def standing_table(results: Results) -> str:
    """Arm, mean rank and share of firsts, a line an arm; empty without standings."""
    rows = [
        [
            standing.arm.name,
            f"{standing.rank.value:.1f} [{standing.rank.low:.1f}, {standing.rank.high:.1f}]",
            f"{standing.first:.0%}",
        ]
        for standing in standings(results)
    ]
    return table(["arm", "mean rank over games", "comes out first"], rows) if rows else ""


STANDING = (
    "Ranks of the arms' means on each game (1 is the highest), averaged over games, with their 95% interval when the "
    "runs are drawn again (one run less than there are, with replacement), and the share of such draws in which the "
    "arm ranks best: a hint where the tests show nothing."
)


def best_told(results: Results) -> str:
    """Which arms may be the best, in one sentence; empty without standings."""
    found = standings(results)
    named = sorted(
        (one for one in found if one.first >= LIKELY_FIRST), key=lambda one: one.first, reverse=True
    )
    if not named:
        return ""
    listed = ", ".join(f"`{one.arm.name}` (first in {one.first:.0%} of draws)" for one in named)
    rest = f"; each of the others in under {LIKELY_FIRST:.0%}" if len(named) < len(found) else ""
    return f"by mean rank over {len(results.study.games)} games, the best may be {listed}{rest}."
