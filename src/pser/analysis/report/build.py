"""Everything a report shows, computed once and independent of how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pser.analysis.published import Source
from pser.analysis.report.comparison import Comparison, compare, normalised_scores
from pser.analysis.report.curves import smoothing_window
from pser.analysis.report.games import GameCurves, game_curves
from pser.analysis.report.labels import Style, styles
from pser.analysis.report.loading import load_runs
from pser.analysis.report.runs import Note, RunSet
from pser.analysis.report.scoreboard import Scoreboard, ScoreKind, build_scoreboard, run_series, source_of
from pser.analysis.report.words import Sentence, summary
from pser.analysis.statistics.aggregate import performance_profile
from pser.errors import PserError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """How the runs are read and compared."""

    smooth_frames: float | None = None
    """Moving average of the curves in frames; None takes the paper's share (5% of the longest run)."""
    at_frames: int | None = None
    """Frames after which runs are scored; None takes what most runs of every label have."""
    score: ScoreKind = "final"
    """Which score stands for a run in the comparisons."""
    resamples: int = 2000
    """Bootstrap resamples and, where they cannot all be counted, permutations."""
    seed: int = 0
    """Seed of both."""
    published: bool = True
    """Lay what others published of a game beside the runs' training returns."""
    title: str = "Replay report"
    """Heading of the page."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Share of runs above each normalised score, by label: a step down at each score."""

    thresholds: FloatArray
    shares: dict[str, FloatArray]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it."""

    settings: ReportSettings
    runs: RunSet
    styles: dict[str, Style]
    board: Scoreboard
    comparison: Comparison
    curves: tuple[GameCurves, ...]
    profile: Profile | None
    window_frames: float
    sentences: tuple[Sentence, ...]
    notes: tuple[Note, ...]

    def sources(self) -> list[Source]:
        """Where the published figures in the charts come from."""
        found = {figures.source.name: figures.source for env in self.curves for figures in env.published}
        return list(found.values())


def build_report(paths: Sequence[Path], settings: ReportSettings) -> Report:
    """Load the runs at `paths` and compute everything."""
    runs = load_runs(paths)
    window = smoothing_window([float(run.frames) for run in runs.runs], settings.smooth_frames)
    board = build_scoreboard(runs, window, settings.at_frames)
    if settings.at_frames is not None and not board.boards:
        _refuse_frames(settings.at_frames, runs)
    rng = np.random.default_rng(settings.seed)
    comparison = compare(board, runs, kind=settings.score, rng=rng, resamples=settings.resamples)
    curves = game_curves(runs, window, published=settings.published)
    return Report(
        settings=settings,
        runs=runs,
        styles=styles(runs.parts),
        board=board,
        comparison=comparison,
        curves=curves,
        profile=_profile(board, comparison),
        window_frames=window,
        sentences=tuple(summary(runs, board, comparison)),
        notes=(*runs.notes, *board.notes, *_notes(board, runs, comparison, curves)),
    )


def _profile(board: Scoreboard, comparison: Comparison) -> Profile | None:
    """Performance profiles over the shared environments (Agarwal et al. 2021, Section 4.2)."""
    tables = {
        summary.label: normalised_scores(board, summary.label, comparison.envs, comparison.kind)
        for summary in comparison.labels
    }
    if not tables:
        return None
    pooled = np.concatenate([task for table in tables.values() for task in table])
    thresholds = np.unique([min(0.0, float(pooled.min()) - 0.02 * float(np.ptp(pooled))), *pooled])
    return Profile(
        thresholds=thresholds,
        shares={label: performance_profile(table, thresholds) for label, table in tables.items()},
    )


def _notes(
    board: Scoreboard, runs: RunSet, comparison: Comparison, curves: Sequence[GameCurves]
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
    return notes


def _refuse_frames(at_frames: int, runs: RunSet) -> None:
    """No run could be scored after so many frames: say why, unless none has a score at all."""
    series = [
        run_series(run, source_of(of_env))
        for of_env in (runs.select(env=env) for env in runs.envs)
        for run in of_env
    ]
    firsts = [int(points.frames[0]) for points in series if len(points)]
    longest = max(run.frames for run in runs.runs)
    if firsts and at_frames < min(firsts):
        raise PserError(
            f"no run has returns up to {at_frames:,} frames; the first come at {min(firsts):,}: raise --at-frames"
        )
    if longest:
        raise PserError(
            f"no run has returns after {at_frames:,} frames; the longest has {longest:,}: lower --at-frames"
        )
