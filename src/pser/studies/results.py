"""What a study's records say: the measure of each arm on each game, and the declared contrasts tested."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.analysis.statistics.bootstrap import LEFT_OUT, Estimate, gain_interval, improvement_interval
from pser.analysis.statistics.comparisons import SHOWN, holm
from pser.analysis.statistics.permutation import permutation_p_value, smallest_p_value
from pser.analysis.statistics.power import seeds_needed, smallest_shown
from pser.studies.cells import Cells, Stratum, cells_of, stratum
from pser.studies.measures import OTHERWISE
from pser.studies.notes import notes_of
from pser.studies.record import Record
from pser.studies.study import Contrast, Study

PERMUTATIONS, RESAMPLES, SEED = 20_000, 2_000, 0


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
    gain: Estimate | None
    """By how much the arm's mean is higher, as a share of what was learned, averaged over the games on which something
    was; None if nothing was learned on any."""
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
    def seeds_to_show(self) -> int | None:
        """About how many seeds of each arm on each game would mostly show the probability that was found; None if it
        is one half."""
        value = self.probability.value
        return None if value == 0.5 else seeds_needed(value, len(self.games), SHOWN / self.together)

    @property
    def shown(self) -> bool:
        """Whether a difference is."""
        return self.corrected < SHOWN

    @property
    def verdict(self) -> str:
        """yes, no (the other is ahead), or what is not known."""
        if self.shown:
            return "higher" if self.probability.value > 0.5 else "lower"
        return "too few runs" if self.smallest >= SHOWN else "no difference shown"


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything a report is written from."""

    study: Study
    records: Mapping[str, Record]
    planned: int
    done: int
    """How many of the planned runs are there."""
    cells: Cells
    tested: tuple[Tested, ...]
    unseen: tuple[Tested, ...]
    """The same without the seeds that had been seen when the study was declared; empty if there were none."""
    notes: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return self.done == self.planned

    @property
    def added(self) -> int:
        """Runs beyond those that are planned."""
        return len(self.records) - self.done

    def without_seen(self, tested: Tested) -> Tested | None:
        """The comparison without the seeds that had been seen before; None if there were none."""
        return next((one for one in self.unseen if one.contrast == tested.contrast), None)

    @property
    def core_hours(self) -> float:
        """Processor time of the runs made for this study."""
        return own_core_hours(self.records.values())


def own_core_hours(records: Iterable[Record]) -> float:
    """Processor time of the runs that were not taken over from another study."""
    return sum(record.cpu_seconds or 0.0 for record in records if record.shared_from is None) / 3600


def results_of(study: Study, records: Mapping[str, Record]) -> Results:
    """Measure and test what is there."""
    planned = {run.path for run in study.runs(records)}
    own = {path: record for path, record in records.items() if study.declares(record.env, record.arm)}
    cells = cells_of(study, study.measure, own.values())
    new = study.first_seed + study.seen_seeds
    unseen = cells_of(study, study.measure, (record for record in own.values() if record.seed >= new))
    return Results(
        study=study,
        records=own,
        planned=len(planned),
        done=len(planned & own.keys()),
        cells=cells,
        tested=tuple(_tested(study, cells)),
        unseen=tuple(_tested(study, unseen)) if study.seen_seeds else (),
        notes=tuple(notes_of(study, own, records)),
    )


def cells_otherwise(results: Results) -> Cells | None:
    """The runs by another measure than the declared one; None where there is no other."""
    study, other = results.study, OTHERWISE.get(results.study.measure.name)
    return None if other is None else cells_of(study, other, results.records.values())


def _tested(study: Study, cells: Cells) -> list[Tested]:
    rng = np.random.default_rng(SEED)
    probed = [
        probe(
            contrast,
            [
                stratum(cells, game, arm, against, f"{game.env}, {arm}" if contrast.pairs else game.env)
                for arm, against in contrast.compared
                for game in study.games
            ],
            rng,
        )
        for contrast in study.contrasts
    ]
    return correct([tested for tested in probed if tested is not None], of=len(study.contrasts))


def probe(contrast: Contrast, strata: Sequence[Stratum], rng: np.random.Generator) -> Tested | None:
    """The contrast tested, its p-value not yet corrected; None if no stratum has runs of both sides."""
    both = [one for one in strata if len(one.x) and len(one.y)]
    if not both:
        return None
    xs, ys = [one.x for one in both], [one.y for one in both]
    p_value = permutation_p_value(xs, ys, rng, permutations=PERMUTATIONS)
    return Tested(
        contrast=contrast,
        games=tuple(one.name for one in both),
        counts=tuple((len(one.x), len(one.y)) for one in both),
        wins=sum(one.x.mean() > one.y.mean() for one in both),
        by_game=tuple(float(probability_of_improvement([one.x], [one.y])) for one in both),
        probability=improvement_interval(xs, ys, rng, resamples=RESAMPLES, left_out=LEFT_OUT),
        gain=_gain(both),
        p_value=p_value,
        corrected=p_value,
        smallest=smallest_p_value(xs, ys),
    )


def _gain(strata: Sequence[Stratum]) -> Estimate | None:
    """By how much the means of one side exceed the other's, as a share of what was learned."""
    known = [(one.x, one.y, one.learned) for one in strata if one.learned is not None]
    if not known:
        return None
    xs, ys, scales = zip(*known, strict=True)
    rng = np.random.default_rng(SEED)  # its own: the tests draw the same with it and without
    return gain_interval(xs, ys, scales, rng, resamples=RESAMPLES, left_out=LEFT_OUT)


def correct(tested: Sequence[Tested], of: int) -> list[Tested]:
    """The same with p-values corrected (Holm) for all comparisons that are declared, of which some may lack runs."""
    untested = [1.0] * (of - len(tested))
    corrected = holm([*(one.p_value for one in tested), *untested])
    return [
        replace(one, corrected=after, together=of)
        for one, after in zip(tested, corrected[: len(tested)], strict=True)
    ]
