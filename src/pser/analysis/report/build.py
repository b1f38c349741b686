"""Everything a report shows, computed once and independent of how it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pser.analysis.published import PublishedCurve, dopamine_curve
from pser.analysis.report.comparison import Comparison, compare, normalised_scores
from pser.analysis.report.curves import (
    MAX_POINTS,
    Curve,
    moving_average,
    over_seeds,
    shared_frames,
    smoothing_window,
)
from pser.analysis.report.loading import load_runs
from pser.analysis.report.runs import Note, Run, RunSet, Series
from pser.analysis.report.scoreboard import Scoreboard, ScoreKind, build_scoreboard, run_series, source_of
from pser.analysis.report.words import Sentence, summary
from pser.analysis.statistics.aggregate import performance_profile

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A quantity of the training records that is drawn over time."""

    key: str
    title: str
    help: str


METRICS = (
    Metric(
        key="effective_share",
        title="effective sample size, share of memory",
        help="1 / (N·Σ P²): 1 is uniform sampling, near 0 a few transitions take all",
    ),
    Metric(
        key="memory.decayed_share",
        title="share of decayed mass",
        help="share of the sampling mass that backward decay put there; 0 for PER and uniform",
    ),
    Metric(
        key="memory.collapse",
        title="collapse meter",
        help="decayed mass lost again when its transition was sampled: 0 none, 1 all (the paper's priority "
        "collapse)",
    ),
    Metric(key="memory.never_replayed_share", title="never replayed", help="share of stored transitions"),
    Metric(key="memory.age_mean", title="mean age", help="in transitions, weighted by sampling mass"),
    Metric(key="memory.max_priority", title="largest priority ever", help="what MaxPrio insertion uses"),
    Metric(key="loss", title="loss", help="mean weighted Huber loss"),
    Metric(key="q_mean", title="mean Q", help="of the sampled state-actions"),
    Metric(key="td_abs_mean", title="mean |TD error|", help="of the sampled transitions"),
    Metric(key="return_mean", title="training return", help="episodes played while exploring"),
    Metric(key="frames_per_second", title="frames per second", help="of training, this machine"),
)
"""The first three are the priority diagnostics; the others can be chosen."""

DIAGNOSTICS = 3
"""How many of METRICS are always shown."""


MAX_NUMBERS = 600_000
"""Numbers that all curves of all metrics together may have."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """How the runs are read and compared."""

    smooth_frames: float | None = None
    """Moving average of the curves in frames; None takes the paper's share (5% of the longest run)."""
    score: ScoreKind = "final"
    """Which score stands for a run in the comparisons."""
    resamples: int = 2000
    """Bootstrap resamples and, where they cannot all be counted, permutations."""
    seed: int = 0
    """Seed of both."""
    dopamine: bool = False
    """Lay Dopamine's published DQN and Rainbow curves beside Atari runs."""
    title: str = "Replay report"
    """Heading of the page."""


@dataclass(frozen=True, kw_only=True)
class EnvCurves:
    """The curves of one environment on shared frames."""

    env: str
    frames: FloatArray
    returns: tuple[Curve, ...]
    metrics: dict[str, tuple[Curve, ...]]
    metric_frames: FloatArray
    published: tuple[PublishedCurve, ...]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Share of runs above each normalised score, by label."""

    thresholds: FloatArray
    shares: dict[str, FloatArray]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it."""

    settings: ReportSettings
    runs: RunSet
    board: Scoreboard
    comparison: Comparison
    curves: tuple[EnvCurves, ...]
    profile: Profile | None
    window_frames: float
    sentences: tuple[Sentence, ...]
    notes: tuple[Note, ...]


def build_report(paths: Sequence[Path], settings: ReportSettings) -> Report:
    """Load the runs at `paths` and compute everything."""
    runs = load_runs(paths)
    window = smoothing_window([float(run.frames) for run in runs.runs], settings.smooth_frames)
    board = build_scoreboard(runs, window)
    rng = np.random.default_rng(settings.seed)
    comparison = compare(board, runs, kind=settings.score, rng=rng, resamples=settings.resamples)
    curves = tuple(_env_curves(env, runs, window, settings) for env in runs.envs)
    return Report(
        settings=settings,
        runs=runs,
        board=board,
        comparison=comparison,
        curves=curves,
        profile=_profile(board, comparison),
        window_frames=window,
        sentences=tuple(summary(runs, board, comparison)),
        notes=(*runs.notes, *board.notes, *_notes(board, runs, comparison, curves)),
    )


def _env_curves(env: str, runs: RunSet, window: float, settings: ReportSettings) -> EnvCurves:
    of_env = runs.select(env=env)
    source = source_of(of_env)
    frames, returns = _grouped(
        of_env, runs.labels, lambda run: moving_average(run_series(run, source), window)
    )
    metrics: dict[str, tuple[Curve, ...]] = {}
    logged = [run.metric_series("frames") for run in of_env]
    metric_frames = shared_frames(logged, _metric_points(len(runs.envs), len(runs.labels)))
    for metric in METRICS:
        _, metrics[metric.key] = _grouped(
            of_env, runs.labels, partial(metric_series, key=metric.key), metric_frames
        )
    agents = ("DQN", "Rainbow") if settings.dopamine else ()
    published = tuple(curve for agent in agents if (curve := dopamine_curve(env, agent)) is not None)
    return EnvCurves(
        env=env,
        frames=frames,
        returns=returns,
        metrics=metrics,
        metric_frames=metric_frames,
        published=published,
    )


def _metric_points(envs: int, labels: int) -> int:
    """Points a metric's curve may have, so that a page of sixty games stays a few megabytes."""
    numbers_a_point = envs * labels * len(METRICS) * 4  # mean, low, high, count
    return int(np.clip(MAX_NUMBERS // numbers_a_point, 30, MAX_POINTS))


def metric_series(run: Run, key: str) -> Series:
    """A metric of the training records; `effective_share` is the effective sample size over the size."""
    if key != "effective_share":
        return run.metric_series(key)
    effective, size = run.metric_series("memory.effective_sample_size"), run.metric_series("memory.size")
    if len(effective) != len(size):
        return Series(np.empty(0), np.empty(0))
    filled = size.values > 0
    return Series(effective.frames[filled], effective.values[filled] / size.values[filled])


def _grouped(
    runs: Sequence[Run],
    labels: Sequence[str],
    points: Callable[[Run], Series],
    frames: FloatArray | None = None,
) -> tuple[FloatArray, tuple[Curve, ...]]:
    """One curve a label, all on the same frames."""
    by_label: dict[str, list[Series]] = {}
    for run in runs:
        by_label.setdefault(run.label, []).append(points(run))
    grid = shared_frames([s for group in by_label.values() for s in group]) if frames is None else frames
    curves = (over_seeds(label, by_label[label], grid) for label in labels if label in by_label)
    return grid, tuple(curve for curve in curves if curve is not None)


def _profile(board: Scoreboard, comparison: Comparison) -> Profile | None:
    """Performance profiles over the shared environments (Agarwal et al. 2021, Section 4.2)."""
    tables = {
        summary.label: normalised_scores(board, summary.label, comparison.envs, comparison.kind)
        for summary in comparison.labels
    }
    if not tables:
        return None
    pooled = np.concatenate([task for table in tables.values() for task in table])
    low, high = min(0.0, float(pooled.min())), float(pooled.max())
    thresholds = np.linspace(low, high if high > low else low + 1.0, 101)
    return Profile(
        thresholds=thresholds,
        shares={label: performance_profile(table, thresholds) for label, table in tables.items()},
    )


def _notes(
    board: Scoreboard, runs: RunSet, comparison: Comparison, curves: Sequence[EnvCurves]
) -> list[Note]:
    notes = []
    single = sorted(
        {
            f"{s.run.label} on {b.env}"
            for b in board.boards
            for s in b.scores
            if len(b.values(s.run.label, "final")) == 1
        }
    )
    if single:
        shown = ", ".join(single[:4]) + (f" and {len(single) - 4} more" if len(single) > 4 else "")
        notes.append(Note(f"a single seed gives a game's score no confidence and no interval: {shown}"))
    no_human = [b.env for b in board.boards if b not in board.pooled()]
    if no_human:
        notes.append(Note(f"no human score, so not pooled with the others: {', '.join(no_human)}"))
    left = [label for label in runs.labels if label not in {s.label for s in comparison.labels}]
    if comparison.labels and left:
        notes.append(Note(f"not on every game of the aggregates, so left out of them: {', '.join(left)}"))
    for env in curves:
        shorter = [curve for curve in env.returns if 0 < curve.count[curve.count > 0].min() < curve.seeds]
        if shorter:
            names = ", ".join(curve.label for curve in shorter)
            notes.append(Note(f"{env.env}: where seeds end early the curve goes on with the others: {names}"))
    if any(curve.published for curve in curves):
        notes.append(Note("dashed curves are Dopamine's published ones: see what differs under the charts"))
    return notes
