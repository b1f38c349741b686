"""One score a run: which evaluations count, up to which frame, and on which scale games are pooled."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pser.analysis.published import human_table
from pser.analysis.report.curves import moving_average
from pser.analysis.report.runs import Note, Run, RunSet, Series
from pser.analysis.statistics import scores

FloatArray = NDArray[np.float64]
ScoreKind = Literal["final", "best"]
Source = Literal["evaluation", "training"]

SLACK = 0.02
"""Vector environments overshoot a budget by a few steps; lengths within 2% count as equal."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Linear scale of one environment: (score − low) / |high − low|."""

    kind: Literal["human", "min-max"]
    low: float
    high: float

    def apply(self, values: FloatArray) -> FloatArray:
        """Scores on this scale."""
        if self.kind == "human":
            return scores.human_normalised(values, self.low, self.high)
        return scores.min_max_normalised(values, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class RunScore:
    """What one run achieved within the budget of its environment."""

    run: Run
    final: float
    """Mean of the evaluations in the last smoothing window of the budget."""
    best: float
    """Highest evaluation: the best snapshot, by the evaluation that chose it (so a little too high)."""
    reevaluated: float | None
    """The best snapshot's score from fresh episodes (`pser evaluate`), if there is one."""
    reevaluated_episodes: int | None

    def get(self, kind: ScoreKind) -> float:
        """The score that stands for the run; a fresh evaluation of the best snapshot is preferred."""
        if kind == "final":
            return self.final
        return self.best if self.reevaluated is None else self.reevaluated


@dataclass(frozen=True, kw_only=True)
class EnvBoard:
    """The scores of one environment."""

    env: str
    source: Source
    """evaluation, or training where no run has evaluations."""
    budget_frames: int
    scores: tuple[RunScore, ...]
    min_max: Scale
    """Lowest and highest smoothed value any run reached."""
    human: Scale | None

    def values(self, label: str, kind: ScoreKind) -> FloatArray:
        """The scores of one label, a value a run."""
        return np.array([score.get(kind) for score in self.scores if score.run.label == label])

    def labels(self) -> list[str]:
        """Labels with at least one score."""
        return sorted({score.run.label for score in self.scores})


@dataclass(frozen=True)
class Scoreboard:
    """All environments, and what was left out of them."""

    boards: tuple[EnvBoard, ...]
    notes: tuple[Note, ...]

    def scale_kind(self) -> Literal["human", "min-max"]:
        """Human-normalised if all is Atari and some game has a human score, else min–max."""
        atari = all(board.env.startswith("atari:") for board in self.boards)
        return "human" if atari and any(board.human for board in self.boards) else "min-max"

    def pooled(self) -> list[EnvBoard]:
        """Environments that can be pooled: on the human scale those with a human score, as in the paper."""
        if self.scale_kind() == "human":
            return [board for board in self.boards if board.human]
        return list(self.boards)

    def scale(self, board: EnvBoard) -> Scale:
        """The scale on which this environment is pooled with the others."""
        return board.human if self.scale_kind() == "human" and board.human else board.min_max


def build_scoreboard(runs: RunSet, window_frames: float, at_frames: float | None = None) -> Scoreboard:
    """Score every run after `at_frames`; environments without a single score are left out (and said)."""
    notes: list[Note] = []
    boards = [
        board
        for env in runs.envs
        if (board := _board(env, runs.select(env=env), window_frames, at_frames, notes)) is not None
    ]
    return Scoreboard(tuple(boards), tuple(notes))


def run_series(run: Run, source: Source) -> Series:
    """The returns a score or a curve is made of."""
    return run.evaluation_series() if source == "evaluation" else run.training_series()


def source_of(runs: Sequence[Run]) -> Source:
    """Evaluations if any run of the environment has them: the two kinds are never mixed."""
    return "evaluation" if any(run.evaluations for run in runs) else "training"


def _board(
    env: str, runs: Sequence[Run], window: float, at_frames: float | None, notes: list[Note]
) -> EnvBoard | None:
    source = source_of(runs)
    points = {run.name: run_series(run, source) for run in runs}
    usable = [run for run in runs if len(points[run.name])]
    if not usable:
        notes.append(Note(f"{env}: no returns recorded, so no score"))
        return None
    if source == "training":
        notes.append(Note(f"{env}: no evaluations; training returns (with exploration) stand in"))
    notes.extend(
        Note("has no evaluation: in no curve and no score", run.name)
        for run in runs
        if run not in usable and run.train
    )
    ends = {run.name: float(points[run.name].frames[-1]) for run in usable}
    budget = _budget(usable, ends) if at_frames is None else at_frames
    kept = [run for run in usable if ends[run.name] >= (1 - SLACK) * budget]
    if not kept:
        notes.append(Note(f"{env}: no run reaches {budget:,.0f} frames, so no score"))
        return None
    _note_lengths(env, usable, kept, ends, budget, notes)
    cut = {run.name: within for run in kept if len(within := _until(points[run.name], budget))}
    late = [run for run in kept if run.name not in cut]
    notes.extend(
        Note(f"begins after the {budget:,.0f} frames compared: in the curves, in no score", run.name)
        for run in late
    )
    kept = [run for run in kept if run.name in cut]
    if not kept:
        return None
    smooth = {name: moving_average(series, window) for name, series in cut.items()}
    pooled = np.concatenate([series.values for series in smooth.values()])
    return EnvBoard(
        env=env,
        source=source,
        budget_frames=int(budget),
        scores=tuple(_score(run, cut[run.name], smooth[run.name], ends[run.name], budget) for run in kept),
        min_max=Scale(kind="min-max", low=float(pooled.min()), high=float(pooled.max())),
        human=_human_scale(env),
    )


def _budget(runs: Sequence[Run], ends: dict[str, float]) -> float:
    """The frames at which runs are compared: those that most runs of every label have.

    A label reaches as far as half of its finished runs do; the shortest label counts, unless it has less than
    half of what runs usually have here. So a stray short run, or a label of stray runs, does not cut all.
    """
    finished = [run for run in runs if run.state == "finished"]
    counted = finished or [run for run in runs if run.state != "failed"] or list(runs)
    lengths: dict[str, list[float]] = {}
    for run in counted:
        lengths.setdefault(run.label, []).append(ends[run.name])
    usual = median_low([ends[run.name] for run in counted])
    return min(length for length in map(median_low, lengths.values()) if length >= usual / 2)


def _until(points: Series, budget: float) -> Series:
    inside = points.frames <= (1 + SLACK) * budget
    return Series(points.frames[inside], points.values[inside])


def _note_lengths(
    env: str,
    usable: Sequence[Run],
    kept: Sequence[Run],
    ends: dict[str, float],
    budget: float,
    notes: list[Note],
) -> None:
    for run in usable:
        if run not in kept:
            notes.append(
                Note(
                    f"stops at {ends[run.name]:,.0f} of {budget:,.0f} frames: in the curves, in no score "
                    f"(--at-frames {ends[run.name]:.0f} would compare there)",
                    run.name,
                )
            )
    if any(ends[run.name] > (1 + SLACK) * budget for run in kept):
        notes.append(
            Note(
                f"{env}: runs differ in length; scores count the first {budget:,.0f} frames of each "
                "(--at-frames chooses another number)"
            )
        )


def _score(run: Run, points: Series, smooth: Series, end: float, budget: float) -> RunScore:
    fresh = run.final or {}
    # A snapshot chosen after the budget is not a score within it.
    best = int(points.values.argmax())
    # Nor is the score of a snapshot that a better one has replaced since.
    current = fresh.get("snapshot") == "best" and fresh.get("snapshot_frames") == points.frames[best]
    comparable = current and end <= (1 + SLACK) * budget
    value = fresh.get("mean_return") if comparable else None
    return RunScore(
        run=run,
        final=float(smooth.values[-1]),
        best=float(points.values[best]),
        reevaluated=None if value is None else float(value),
        reevaluated_episodes=int(fresh.get("episodes", 0)) if value is not None else None,
    )


def _human_scale(env: str) -> Scale | None:
    row = human_table(env)
    if row is None or row.random is None or row.human is None:
        return None
    return Scale(kind="human", low=row.random, high=row.human)
