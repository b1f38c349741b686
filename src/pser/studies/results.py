"""What a study's records say: the measure of each arm on each game, and the declared contrasts tested."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.analysis.statistics.bootstrap import Estimate, improvement_interval
from pser.analysis.statistics.comparisons import holm
from pser.analysis.statistics.permutation import arrangements, permutation_p_value
from pser.analysis.statistics.power import smallest_shown
from pser.analysis.statistics.shares import share_above
from pser.studies.measures import OTHERWISE, Measure
from pser.studies.notes import notes_of
from pser.studies.record import Record
from pser.studies.study import Arm, Contrast, Game, Study

FloatArray = NDArray[np.float64]
Stratum = tuple[str, FloatArray, FloatArray]
"""Name of a game, and the measures of the runs on either side."""
SHOWN = 0.05
"""Corrected p-values below this call a difference shown."""
PERMUTATIONS, RESAMPLES, SEED = 20_000, 2_000, 0
LEFT_OUT = 1
"""Runs that each draw of the bootstrap has less than there are, so that its intervals hold with three seeds."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One arm on one game."""

    game: Game
    arm: Arm
    values: FloatArray
    """The measure, a value a seed."""
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


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A declared contrast with what the records say about it."""

    contrast: Contrast
    games: tuple[str, ...]
    """The games on which both arms have runs; of several pairs each game of each."""
    counts: tuple[tuple[int, int], ...]
    """Runs of the arm and of the other, on each of these games."""
    wins: int
    """Games on which the arm's mean is the higher."""
    by_game: tuple[float, ...]
    """The probability that a run of the arm scores higher than one of the other, on each of these games."""
    probability: Estimate
    """The same, averaged over games."""
    p_value: float
    corrected: float
    """Holm's correction over all contrasts that are tested together."""
    smallest: float
    """The p-value of a clean sweep, before correction: what these seeds can prove at best."""
    together: int = 1
    """How many contrasts are tested together."""

    @property
    def seeds(self) -> int:
        """Fewest seeds of either arm on any of these games."""
        return min(min(pair) for pair in self.counts)

    @property
    def runs(self) -> int:
        """Runs of both arms that were compared."""
        return sum(sum(pair) for pair in self.counts)

    @property
    def shown_from(self) -> float | None:
        """The true probability that so many runs would mostly show; None if no difference is large enough."""
        return smallest_shown(self.counts, SHOWN / self.together)

    @property
    def verdict(self) -> str:
        """yes, no (the other is ahead), or what is not known."""
        if self.corrected < SHOWN:
            return "higher" if self.probability.value > 0.5 else "lower"
        return "too few runs" if self.smallest >= SHOWN else "no difference shown"


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything a report is written from."""

    study: Study
    records: Mapping[str, Record]
    planned: int
    cells: Cells
    tested: tuple[Tested, ...]
    notes: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return len(self.records) >= self.planned

    @property
    def core_hours(self) -> float:
        """Processor time of the runs made for this study."""
        return own_core_hours(self.records.values())


def own_core_hours(records: Iterable[Record]) -> float:
    """Processor time of the runs that were not taken over from another study."""
    return sum(record.cpu_seconds or 0.0 for record in records if record.shared_from is None) / 3600


def results_of(study: Study, records: Mapping[str, Record], seeds: int | None = None) -> Results:
    """Measure and test what is there."""
    planned = study.runs(records, seeds)
    own = {path: record for path, record in records.items() if _is_of(record, study)}
    cells = _cells(study, study.measure, own.values())
    return Results(
        study=study,
        records=own,
        planned=len(planned),
        cells=cells,
        tested=tuple(_tested(study, cells)),
        notes=tuple(notes_of(study, own, records)),
    )


def cells_otherwise(results: Results) -> Cells | None:
    """The runs by another measure than the declared one; None where there is no other."""
    study, other = results.study, OTHERWISE.get(results.study.measure.name)
    return None if other is None else _cells(study, other, results.records.values())


def _cells(study: Study, measure: Measure, records: Collection[Record]) -> Cells:
    return {
        (game.env, arm.name): _cell(study, measure, game, arm, records)
        for game in study.games
        for arm in study.arms
    }


def _is_of(record: Record, study: Study) -> bool:
    return record.arm in {arm.name for arm in study.arms} and study.game_of(record.env) is not None


def _cell(study: Study, measure: Measure, game: Game, arm: Arm, records: Iterable[Record]) -> Cell:
    measured = [
        measure.compute(record.curve)
        for record in records
        if record.arm == arm.name and study.game_of(record.env) == game
    ]
    values = np.array([value for value in measured if value is not None], dtype=np.float64)
    share = None if game.take_off is None or not len(values) else share_above(values, game.take_off)
    return Cell(game=game, arm=arm, values=values, taken_off=share)


def _tested(study: Study, cells: Cells) -> list[Tested]:
    rng = np.random.default_rng(SEED)
    probed = [
        probe(
            contrast,
            [
                (
                    f"{game.env}, {arm}" if contrast.pairs else game.env,
                    cells[game.env, arm].values,
                    cells[game.env, against].values,
                )
                for arm, against in contrast.compared
                for game in study.games
            ],
            rng,
        )
        for contrast in study.contrasts
    ]
    return correct([tested for tested in probed if tested is not None])


def probe(contrast: Contrast, strata: Sequence[Stratum], rng: np.random.Generator) -> Tested | None:
    """The contrast tested, its p-value not yet corrected; None if no stratum has runs of both sides."""
    both = [(name, x, y) for name, x, y in strata if len(x) and len(y)]
    if not both:
        return None
    xs, ys = [x for _, x, _ in both], [y for _, _, y in both]
    p_value = permutation_p_value(xs, ys, rng, permutations=PERMUTATIONS)
    return Tested(
        contrast=contrast,
        games=tuple(name for name, _, _ in both),
        counts=tuple((len(x), len(y)) for _, x, y in both),
        wins=sum(x.mean() > y.mean() for _, x, y in both),
        by_game=tuple(float(probability_of_improvement([x], [y])) for _, x, y in both),
        probability=improvement_interval(xs, ys, rng, resamples=RESAMPLES, left_out=LEFT_OUT),
        p_value=p_value,
        corrected=p_value,
        smallest=min(1.0, 2 / arrangements(xs, ys)),
    )


def correct(tested: Sequence[Tested]) -> list[Tested]:
    """The same with p-values corrected for being looked at together (Holm)."""
    corrected = holm([one.p_value for one in tested])
    return [
        replace(one, corrected=after, together=len(tested))
        for one, after in zip(tested, corrected, strict=True)
    ]
