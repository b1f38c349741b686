"""The paper's score table, recomputed: every aggregate it states and the ones it does not."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pser.analysis.published import GameScores, dopamine_figures, paper_scores
from pser.analysis.statistics import aggregate, scores
from pser.analysis.statistics.bootstrap import Estimate, percentile_interval, task_resample
from pser.analysis.statistics.influence import Tally, leave_one_out_means, shares_of_mean, sign_test, tally

FloatArray = NDArray[np.float64]

ASTEROIDS_RANDOM = 719.1
"""Random score of Asteroids elsewhere (google-deepmind/dqn_zoo, atari_data.py); the paper prints −719.1."""


@dataclass(frozen=True, kw_only=True)
class GameRow:
    """One game of the table with everything derived from it; percentages are in percent."""

    game: str
    random: float | None
    human: float | None
    per: float
    pser: float
    per_normalised: float | None
    pser_normalised: float | None
    difference: float | None
    """PSER − PER in human-normalised points."""
    percent_change: float | None
    """The paper's formula to the letter; None where it divides by zero."""
    signed_percent_change: float | None
    """The same over |PER|, so that its sign says who is better."""
    winner: str
    """`PSER`, `PER` or `tie`."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One statistic of the human-normalised scores, with intervals over games (paired for the difference)."""

    name: str
    pser: Estimate
    per: Estimate
    difference: Estimate


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What one game does to the means."""

    game: str
    difference: float
    share_of_gain: float
    """Its part of the mean's gain; the parts of all games sum to 1."""
    pser_mean_without: float
    per_mean_without: float


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to define "relative difference", and how many games it puts beyond 100%."""

    name: str
    formula: str
    pser_games: tuple[str, ...]
    per_games: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PaperAnalysis:
    """All numbers behind the verdicts."""

    games: tuple[GameRow, ...]
    aggregates: dict[str, Aggregate]
    all_games: Tally
    human_games: Tally
    sign_test_all: float
    sign_test_human: float
    influence: tuple[Influence, ...]
    """Largest effect on the mean first."""
    readings: tuple[Reading, ...]
    median_games: dict[str, str]
    """The game that is the median, for each algorithm."""
    within_run_spread: tuple[str, ...]
    """Games whose |PSER − PER| is below the range of Dopamine's five DQN runs at the end of training."""
    asteroids_corrected_means: dict[str, float]
    """Means (percent) if the random score of Asteroids is positive, as in other sources."""
    resamples: int
    seed: int


def analyse(*, seed: int = 0, resamples: int = 20_000, confidence: float = 0.95) -> PaperAnalysis:
    """Recompute everything from the carried table; the same seed gives the same intervals."""
    table = paper_scores()
    human = [row for row in table if row.human is not None]
    per, pser = _normalised(human, "per"), _normalised(human, "pser")
    all_games = tally(_column(table, "pser"), _column(table, "per"))
    human_games = tally(_column(human, "pser"), _column(human, "per"))
    rng = np.random.default_rng(seed)
    draw = task_resample(len(human), resamples, rng)
    return PaperAnalysis(
        games=tuple(_game_row(row) for row in table),
        aggregates=_aggregates(per, pser, draw, confidence),
        all_games=all_games,
        human_games=human_games,
        sign_test_all=sign_test(all_games),
        sign_test_human=sign_test(human_games),
        influence=_influence([row.game for row in human], per, pser),
        readings=_readings(human, per, pser),
        median_games={"PSER": _median_game(human, pser), "PER": _median_game(human, per)},
        within_run_spread=_within_run_spread(table),
        asteroids_corrected_means=_corrected_means(human),
        resamples=resamples,
        seed=seed,
    )


def _column(rows: tuple[GameScores, ...] | list[GameScores], name: str) -> FloatArray:
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)


def _normalised(rows: list[GameScores], name: str) -> FloatArray:
    """Human-normalised scores in percent."""
    parts = (_column(rows, column) for column in (name, "random", "human"))
    return 100.0 * scores.human_normalised(*parts)


def _game_row(row: GameScores) -> GameRow:
    per = pser = None
    if row.random is not None and row.human is not None:
        per = 100.0 * float(scores.human_normalised(row.per, row.random, row.human))
        pser = 100.0 * float(scores.human_normalised(row.pser, row.random, row.human))
    return GameRow(
        game=row.game,
        random=row.random,
        human=row.human,
        per=row.per,
        pser=row.pser,
        per_normalised=per,
        pser_normalised=pser,
        difference=None if per is None or pser is None else pser - per,
        percent_change=_defined(scores.percent_change(row.pser, row.per)),
        signed_percent_change=_defined(scores.signed_percent_change(row.pser, row.per)),
        winner="PSER" if row.pser > row.per else "PER" if row.per > row.pser else "tie",
    )


def _defined(value: FloatArray) -> float | None:
    return None if np.isnan(value) else float(value)


def _over_games(statistic: aggregate.Statistic, values: FloatArray) -> FloatArray:
    """`statistic` where the last axis of `values` is games of one run each."""
    return statistic([values[..., game : game + 1] for game in range(values.shape[-1])])


def _aggregates(
    per: FloatArray, pser: FloatArray, draw: NDArray[np.int64], confidence: float
) -> dict[str, Aggregate]:
    """Intervals resample the games: they say how the number depends on which games were chosen."""
    statistics: dict[str, Callable[[FloatArray], FloatArray]] = {
        "median": lambda values: _over_games(aggregate.median, values),
        "mean": lambda values: _over_games(aggregate.mean, values),
        "IQM": lambda values: _over_games(aggregate.iqm, values),
        "optimality gap": lambda values: _over_games(lambda s: aggregate.optimality_gap(s, 100.0), values),
    }
    result = {}
    for name, statistic in statistics.items():
        x, y = float(statistic(pser)), float(statistic(per))
        xs, ys = statistic(pser[draw]), statistic(per[draw])
        result[name] = Aggregate(
            name=name,
            pser=percentile_interval(x, xs, confidence),
            per=percentile_interval(y, ys, confidence),
            difference=percentile_interval(x - y, xs - ys, confidence),
        )
    return result


def _influence(games: list[str], per: FloatArray, pser: FloatArray) -> tuple[Influence, ...]:
    difference = pser - per
    pser_without, per_without = leave_one_out_means(pser), leave_one_out_means(per)
    shares = shares_of_mean(difference)
    order = np.argsort(-np.abs(difference), kind="stable")
    return tuple(
        Influence(
            game=games[i],
            difference=float(difference[i]),
            share_of_gain=float(shares[i]),
            pser_mean_without=float(pser_without[i]),
            per_mean_without=float(per_without[i]),
        )
        for i in order
    )


def _readings(human: list[GameScores], per: FloatArray, pser: FloatArray) -> tuple[Reading, ...]:
    """The paper does not define its "relative difference"; these are the definitions its text could mean."""
    raw = {name: _column(human, name) for name in ("random", "human", "per", "pser")}
    raw_change = scores.percent_change(raw["pser"], raw["per"])
    over_baseline = scores.baseline_difference(raw["pser"], raw["per"], raw["random"], raw["human"])
    raw_symmetric = scores.symmetric_difference(raw["pser"], raw["per"])
    values = (
        ("difference of human-normalised scores", "h_PSER − h_PER", pser - per),
        ("percent change of raw scores", "(PSER − PER) / PER", raw_change),
        ("percent change of human-normalised scores", "(h_PSER − h_PER) / |h_PER|",
         scores.signed_percent_change(pser, per)),
        ("improvement over the better of human and PER", "(PSER − PER) / (max(human, PER) − random)",
         over_baseline),
        ("symmetric relative difference of human-normalised scores",
         "(h_PSER − h_PER) / mean(|h_PSER|, |h_PER|)",
         scores.symmetric_difference(pser, per)),
        ("symmetric relative difference of raw scores", "(PSER − PER) / mean(|PSER|, |PER|)",
         raw_symmetric),
    )  # fmt: skip
    games = [row.game for row in human]
    return tuple(
        Reading(
            name=name,
            formula=formula,
            pser_games=tuple(game for game, x in zip(games, value, strict=True) if x > 100.0),
            per_games=tuple(game for game, x in zip(games, value, strict=True) if x < -100.0),
        )
        for name, formula, value in values
    )


def _median_game(human: list[GameScores], values: FloatArray) -> str:
    """The game whose score is the median (55 games: the 28th in order)."""
    return human[int(np.argsort(values, kind="stable")[len(values) // 2])].game


def _within_run_spread(table: tuple[GameScores, ...]) -> tuple[str, ...]:
    """Games where five runs of one algorithm differ by more than the paper's single runs of two.

    The range (highest − lowest run) is that of Dopamine's DQN at its last figure, 198M frames.
    """
    figures = dopamine_figures()
    names = []
    for row in table:
        found = figures[row.game, "DQN"]
        if abs(row.pser - row.per) < found.high[-1] - found.low[-1]:
            names.append(row.game)
    return tuple(names)


def _corrected_means(human: list[GameScores]) -> dict[str, float]:
    random = np.array([ASTEROIDS_RANDOM if row.game == "Asteroids" else row.random for row in human])
    human_scores = _column(human, "human")
    return {
        name.upper(): 100.0
        * float(scores.human_normalised(_column(human, name), random, human_scores).mean())
        for name in ("pser", "per")
    }
