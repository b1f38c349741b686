"""The curves of each game: evaluation and training returns, the quantities of the memory, published figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pser.analysis.published import PublishedFigures, published_figures
from pser.analysis.report.curves import MAX_POINTS, Curve, moving_average, over_seeds, shared_frames
from pser.analysis.report.metrics import METRICS, metric_series
from pser.analysis.report.runs import Run, RunSet, Series
from pser.analysis.report.scoreboard import Source, run_series, source_of

FloatArray = NDArray[np.float64]

MAX_NUMBERS = 600_000
"""Numbers that all curves of all metrics together may have."""

MAX_LINE_NUMBERS = 600_000
"""Numbers that the runs' own curves may have together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GameCurves:
    """The curves of one game, each kind on shared frames."""

    env: str
    source: Source
    """What `returns` are: evaluations, or training returns where no run was evaluated."""
    frames: FloatArray
    returns: tuple[Curve, ...]
    training_frames: FloatArray
    training: tuple[Curve, ...]
    """Returns of the episodes played while learning, exploration included; published figures are such."""
    metrics: dict[str, tuple[Curve, ...]]
    metric_frames: FloatArray
    published: tuple[PublishedFigures, ...]
    """As far as the runs go."""


def game_curves(runs: RunSet, window: float, *, published: bool) -> tuple[GameCurves, ...]:
    """Every game's curves, thinned so that a page of many runs stays a few megabytes."""
    line_points = int(np.clip(MAX_LINE_NUMBERS // (2 * len(runs.runs)), 50, MAX_POINTS))
    numbers_a_point = len(runs.envs) * len(runs.labels) * len(METRICS) * 4  # mean, low, high, count
    metric_points = int(np.clip(MAX_NUMBERS // numbers_a_point, 30, MAX_POINTS))
    curves = []
    for env in runs.envs:
        of_env = runs.select(env=env)
        source = source_of(of_env)
        frames, returns = _returns(of_env, runs.labels, source, window, line_points)
        ends = [run.train[-1]["frames"] for run in of_env if run.train]
        figures = _reached(published_figures(env), max(ends, default=0)) if published else ()
        training_frames, training = _returns(
            of_env, runs.labels, "training", window, line_points, [x.frames for x in figures]
        )
        metric_frames = shared_frames([run.metric_series("frames") for run in of_env], metric_points)
        metrics = {
            metric.key: _grouped(of_env, runs.labels, partial(metric_series, key=metric.key), metric_frames)
            for metric in METRICS
        }
        curves.append(
            GameCurves(
                env=env,
                source=source,
                frames=frames,
                returns=returns,
                training_frames=training_frames,
                training=training,
                metrics=metrics,
                metric_frames=metric_frames,
                published=figures,
            )
        )
    return tuple(curves)


def _returns(
    runs: Sequence[Run],
    labels: Sequence[str],
    source: Source,
    window: float,
    points: int,
    also_at: Sequence[NDArray[np.int64]] = (),
) -> tuple[FloatArray, tuple[Curve, ...]]:
    smooth = {run.name: moving_average(run_series(run, source), window) for run in runs}
    frames = shared_frames(list(smooth.values()), points)
    frames = np.unique(np.concatenate([frames, *also_at]))
    return frames, _grouped(runs, labels, lambda run: smooth[run.name], frames)


def _grouped(
    runs: Sequence[Run], labels: Sequence[str], points: Callable[[Run], Series], frames: FloatArray
) -> tuple[Curve, ...]:
    """One curve a label, all on the same frames."""
    by_label: dict[str, dict[str, Series]] = {}
    for run in runs:
        by_label.setdefault(run.label, {})[run.name] = points(run)
    curves = (over_seeds(label, by_label[label], frames) for label in labels if label in by_label)
    return tuple(curve for curve in curves if curve is not None)


def _reached(published: Sequence[PublishedFigures], frames: float) -> tuple[PublishedFigures, ...]:
    """The published figures at frames that the runs have reached (within a twentieth)."""
    cut = (figures.until(1.05 * frames) for figures in published)
    return tuple(figures for figures in cut if len(figures.frames))
