"""What each arm of a study did on each game, and two arms beside each other there."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.bootstrap import Estimate
from pser.analysis.statistics.shares import share_above
from pser.studies.measures import Curve, Measure, beginning
from pser.studies.record import Record
from pser.studies.study import Arm, Game, Study

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One arm on one game."""

    game: Game
    arm: Arm
    values: FloatArray
    """The measure, a value a seed."""
    beginnings: FloatArray
    """Where the learning curves of these runs begin."""
    taken_off: Estimate | None
    """Share of runs above the game's take-off line, if it has one and there are runs."""

    @property
    def mean(self) -> float:
        """Mean over seeds; NaN without runs."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def error(self) -> float:
        """Standard error over seeds; NaN with fewer than two."""
        count = len(self.values)
        return float(self.values.std(ddof=1) / count**0.5) if count > 1 else float("nan")


Cells = dict[tuple[str, str], Cell]
"""(game, arm) → its runs."""


@dataclass(frozen=True)
class Stratum:
    """A game of a comparison, or one of several pairs of arms on it."""

    name: str
    x: FloatArray
    """The measures of the runs on one side."""
    y: FloatArray
    learned: float | None
    """What the best arm learned there, in the units of the measure; None where nothing was."""


def cells_of(study: Study, measure: Measure, records: Iterable[Record]) -> Cells:
    """Every arm on every game, by a measure."""
    curves: defaultdict[tuple[str, str], list[Curve]] = defaultdict(list)
    for record in records:
        curves[record.env.casefold(), record.arm].append(record.curve)
    return {
        (game.env, arm.name): _cell(measure, game, arm, curves[game.env.casefold(), arm.name])
        for game in study.games
        for arm in study.arms
    }


def _cell(measure: Measure, game: Game, arm: Arm, curves: Sequence[Curve]) -> Cell:
    values = _known(measure.compute(curve) for curve in curves)
    share = None if game.take_off is None or not len(values) else share_above(values, game.take_off)
    beginnings = _known(beginning(curve) for curve in curves)
    return Cell(game=game, arm=arm, values=values, beginnings=beginnings, taken_off=share)


def _known(values: Iterable[float | None]) -> FloatArray:
    return np.array([value for value in values if value is not None], dtype=np.float64)


def stratum(cells: Cells, game: Game, arm: str, against: str, name: str) -> Stratum:
    """Two arms on a game."""
    return Stratum(name, cells[game.env, arm].values, cells[game.env, against].values, _learned(cells, game))


def _learned(cells: Cells, game: Game) -> float | None:
    """From where all learning curves of a game begin, on average, to the mean of its best arm; None if that is not
    twice its standard error: then there is nothing to have a share of."""
    of_game = [cell for (env, _), cell in cells.items() if env == game.env and len(cell.values)]
    if not of_game:
        return None
    best = max(of_game, key=lambda cell: cell.mean)
    learned = best.mean - float(np.concatenate([cell.beginnings for cell in of_game]).mean())
    error = 0.0 if np.isnan(best.error) else best.error
    return learned if learned > 2 * error else None
