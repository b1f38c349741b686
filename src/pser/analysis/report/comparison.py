"""Aggregates of each label, and pairs of labels: which differ, by how much, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pser.analysis.report.labels import Label
from pser.analysis.report.runs import RunSet
from pser.analysis.report.scoreboard import Scoreboard, ScoreKind
from pser.analysis.statistics import aggregate
from pser.analysis.statistics.bootstrap import (
    LEFT_OUT,
    Estimate,
    improvement_interval,
    stratified_interval,
)
from pser.analysis.statistics.comparisons import SHOWN, holm
from pser.analysis.statistics.permutation import permutation_p_value, smallest_p_value
from pser.analysis.statistics.scores import signed_percent_change

STATISTICS: dict[str, aggregate.Statistic] = {
    "IQM": aggregate.iqm,
    "mean": aggregate.mean,
    "median": aggregate.median,
    "optimality gap": aggregate.optimality_gap,
}
"""The aggregates of Agarwal et al. 2021; in all but the gap more is better."""


@dataclass(frozen=True, kw_only=True)
class Value:
    """A number, with an interval where the seeds allow one."""

    value: float
    interval: Estimate | None
    """None where so few seeds give none: a single run, or runs so clearly apart that it shrinks to a point."""

    def complement(self) -> "Value":
        """1 − value, the interval turned round."""
        flipped = self.interval and replace(
            self.interval,
            value=1 - self.interval.value,
            low=1 - self.interval.high,
            high=1 - self.interval.low,
        )
        return Value(value=1 - self.value, interval=flipped)


@dataclass(frozen=True, kw_only=True)
class LabelSummary:
    """One label over the environments of the aggregates."""

    label: str
    runs: int
    statistics: dict[str, Value]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One label against another over the environments both have."""

    x: str
    y: str
    envs: tuple[str, ...]
    seeds_x: tuple[int, int]
    """Fewest and most seeds of x on an environment."""
    seeds_y: tuple[int, int]
    probability: Value
    """Probability that a run of x scores higher than one of y."""
    p_value: float
    """Permutation test, two-sided. With one seed a side and game it is a sign test over games."""
    corrected: float
    """The same, corrected for all pairs compared (Holm 1979)."""
    comparisons: int
    """How many pairs were compared."""
    smallest_p_value: float
    """What the test would give if every run of one side beat every run of the other."""
    means: dict[str, tuple[float, float]]
    """Environment → mean score of x and of y."""

    @property
    def shown(self) -> bool:
        """Whether the test shows a difference. Without it nobody is ahead."""
        return self.corrected < SHOWN

    @property
    def ahead(self) -> bool:
        """Whether the test shows that x scores higher than y."""
        return self.shown and self.probability.value > 0.5

    @property
    def single_seed(self) -> bool:
        """Whether some game has one run on a side."""
        return min(self.seeds_x[0], self.seeds_y[0]) == 1

    def changes(self) -> dict[str, float]:
        """Environment → percent change of the mean score of x over that of y; NaN where y's is 0."""
        return {env: float(signed_percent_change(x, y)) for env, (x, y) in self.means.items()}

    def turned(self) -> "Pair":
        """The same comparison seen from the other side."""
        return replace(
            self,
            x=self.y,
            y=self.x,
            seeds_x=self.seeds_y,
            seeds_y=self.seeds_x,
            probability=self.probability.complement(),
            means={env: (y, x) for env, (x, y) in self.means.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All labels and pairs."""

    kind: ScoreKind
    scale: str
    envs: tuple[str, ...]
    """Environments of the aggregates: those that can be pooled and that every main label has, if several."""
    labels: tuple[LabelSummary, ...]
    """The labels that have all of these environments."""
    pairs: tuple[Pair, ...]


def compare(
    board: Scoreboard, runs: RunSet, *, kind: ScoreKind, rng: np.random.Generator, resamples: int
) -> Comparison:
    """Aggregates over the environments that every main label has, and all pairs of labels."""
    present = [label for label in runs.labels if any(label in b.labels() for b in board.boards)]
    main = {label for label in runs.main_labels if label in present}
    shared = tuple(b.env for b in board.pooled() if main <= set(b.labels()))
    if len(shared) < 2:
        shared = ()  # an aggregate over one game would only repeat its score
    everywhere = [
        label for label in present if all(label in b.labels() for b in board.boards if b.env in shared)
    ]
    summaries = [_summary(board, label, shared, kind, rng, resamples) for label in everywhere if shared]
    parts = {part.name: part for part in runs.parts}
    compared = [
        (x, y)
        for index, x in enumerate(present)
        for y in present[index + 1 :]
        if _comparable(parts[x], parts[y])
    ]
    # So many shuffles that a corrected p-value can fall well below SHOWN, however many the pairs.
    shuffles = max(resamples, 60 * len(compared))
    found = [_pair(board, x, y, kind, rng, resamples, shuffles) for x, y in compared]
    pairs = [pair for pair in found if pair is not None]
    corrected = holm([pair.p_value for pair in pairs])
    pairs = [
        replace(pair, corrected=p, comparisons=len(pairs)) for pair, p in zip(pairs, corrected, strict=True)
    ]
    return Comparison(
        kind=kind, scale=board.scale_kind(), envs=shared, labels=tuple(summaries), pairs=tuple(pairs)
    )


def normalised_scores(
    board: Scoreboard, label: str, envs: Sequence[str], kind: ScoreKind
) -> list[aggregate.FloatArray]:
    """A label's scores by environment, on the scale on which environments are pooled."""
    return [board.scale(b).apply(b.values(label, kind)) for b in board.boards if b.env in envs]


def _comparable(x: Label, y: Label) -> bool:
    """Two strategies of one agent, or one strategy under two agents: else two things differ at once."""
    return x.agent == y.agent or x.strategy == y.strategy


def _summary(
    board: Scoreboard,
    label: str,
    envs: Sequence[str],
    kind: ScoreKind,
    rng: np.random.Generator,
    resamples: int,
) -> LabelSummary:
    table = normalised_scores(board, label, envs, kind)
    enough = min(len(task) for task in table) > 1
    values = {}
    for name, statistic in STATISTICS.items():
        interval = (
            stratified_interval(statistic, table, rng, resamples=resamples, left_out=LEFT_OUT)
            if enough
            else None
        )
        values[name] = Value(value=float(statistic(table)), interval=_worth_giving(interval))
    return LabelSummary(label=label, runs=sum(len(task) for task in table), statistics=values)


def _pair(
    board: Scoreboard,
    x: str,
    y: str,
    kind: ScoreKind,
    rng: np.random.Generator,
    resamples: int,
    shuffles: int,
) -> Pair | None:
    both = [b for b in board.boards if {x, y} <= set(b.labels())]
    if not both:
        return None
    xs, ys = ([b.values(label, kind) for b in both] for label in (x, y))
    seeds_x, seeds_y = ([len(task) for task in side] for side in (xs, ys))
    smallest = smallest_p_value(xs, ys)
    # Too few seeds to show any difference are too few for an interval.
    enough = min(*seeds_x, *seeds_y) > 1 and smallest < SHOWN
    p_value = permutation_p_value(xs, ys, rng, permutations=shuffles)
    return Pair(
        x=x,
        y=y,
        envs=tuple(b.env for b in both),
        seeds_x=(min(seeds_x), max(seeds_x)),
        seeds_y=(min(seeds_y), max(seeds_y)),
        probability=Value(
            value=float(aggregate.probability_of_improvement(xs, ys)),
            interval=_worth_giving(improvement_interval(xs, ys, rng, resamples=resamples, left_out=LEFT_OUT))
            if enough
            else None,
        ),
        p_value=p_value,
        corrected=p_value,
        comparisons=1,
        smallest_p_value=smallest,
        means={b.env: (float(a.mean()), float(c.mean())) for b, a, c in zip(both, xs, ys, strict=True)},
    )


def _worth_giving(estimate: Estimate | None) -> Estimate | None:
    """No interval where it shrinks to a point: after a clean sweep every resample gives the same."""
    return None if estimate is None or estimate.collapsed else estimate
