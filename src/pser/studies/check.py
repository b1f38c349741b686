"""Are we right? The trainer beside published learning curves of the same set-up."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray

from pser.analysis.markdown import table
from pser.analysis.published import published_figures
from pser.studies.arms import PER_LOSS, UNIFORM
from pser.studies.measures import Curve
from pser.studies.results import Results
from pser.studies.study import Game, Study
from pser.studies.telling import Told

AT_FRAMES = (250_000, 500_000)
PUBLISHED = {"uniform": "uniform", "per-loss": "PER"}
"""Arm → what the published figures call it."""
SMOOTHING = 0.99
"""The published curves are a moving average over episodes with this share of the past, begun at 0."""
BIN_FRAMES = 50_000
"""A published point is the mean of what was logged in so many frames before it …"""
LOGGED_EVERY = {"uniform": 50_000, "PER": 5_000}
"""… and logged was the moving average, from the first episode on, every so many frames: of uniform replay a point is
just the value 50,000 frames before (MinAtar/plotting.py and examples/ of shivakanthsujit/reducible-loss)."""
NEAR = 2.0
"""Standard errors of the difference within which two means are called alike."""


def moving_average(curve: Curve) -> list[tuple[float, float]]:
    """Frames and e at the end of each interval in which episodes ended.

    e ← 0.99·e + 0.01·R for each episode's return R, from 0; the n episodes of one logged interval count as n times
    their mean.
    """
    value, found = 0.0, []
    for end, count, average in curve:
        if count:
            kept = SMOOTHING**count
            value = kept * value + (1.0 - kept) * average
            found.append((end, value))
    return found


def as_published(curve: Curve, frames: int, logged_every: int) -> float | None:
    """What a published curve would say of this run at so many frames; None if it had not begun, or ended before."""
    found = moving_average(curve)
    logged = range(frames - BIN_FRAMES, frames, logged_every)
    if not found or found[0][0] > logged[0] or found[-1][0] < logged[-1]:
        return None
    ends, values = zip(*found, strict=True)
    return float(np.interp(list(logged), ends, values).mean())


@dataclass(frozen=True)
class Comparison:
    """Our means beside the published ones."""

    rows: list[list[str]]
    distances: list[float]
    """How many standard errors (of the difference) each of ours lies above the published one, where that is known."""

    def page(self) -> str:
        """The table."""
        header = [
            "game",
            "arm",
            "frames",
            "ours ± standard error (seeds)",
            "published",
            "standard errors apart",
        ]
        return table(header, self.rows) if self.rows else ""

    def near(self) -> str:
        """How many are called alike."""
        near = sum(abs(distance) <= NEAR for distance in self.distances)
        furthest = (
            ""
            if near == len(self.distances)
            else f" (the furthest is {max(self.distances, key=abs):+.1f} away)"
        )
        return f"{near} of {len(self.distances)} points{furthest}"


def compare(results: Results, published_name: Mapping[str, str]) -> Comparison:
    """The arms of a study, as the published figures call them, beside these."""
    rows, distances = [], []
    for game in results.study.games:
        for figures in published_figures(game.env):
            for arm in [arm for arm, name in published_name.items() if name == figures.agent]:
                for frames in AT_FRAMES:
                    ours = _ours(results, game, arm, frames, LOGGED_EVERY[figures.agent])
                    if not ours:
                        continue
                    (at,) = [index for index, known in enumerate(figures.frames) if known == frames]
                    published, error = float(figures.mean[at]), float(figures.high[at] - figures.mean[at])
                    told, apart = f"{ours[0]:.2f} (1)", "–"
                    if len(ours) > 1:
                        own_error = stdev(ours) / math.sqrt(len(ours))
                        distances.append((mean(ours) - published) / math.hypot(own_error, error))
                        told, apart = (
                            f"{mean(ours):.2f} ± {own_error:.2f} ({len(ours)})",
                            f"{distances[-1]:+.1f}",
                        )
                    rows.append([game.env, arm, f"{frames:,}", told, f"{published:.2f} ± {error:.2f}", apart])
    return Comparison(rows, distances)


def tell(results: Results) -> Told:
    """Ours beside the published figures: how many standard errors apart."""
    comparison = compare(results, PUBLISHED)
    if not comparison.distances:
        return Told("Not known yet: a standard error needs two seeds.", comparison.page())
    return Told(
        f"Our mean lies within two standard errors of the published one at {comparison.near()}.",
        comparison.page(),
    )


def _ours(results: Results, game: Game, arm: str, frames: int, logged_every: int) -> Sequence[float]:
    values = [as_published(curve, frames, logged_every) for curve in _curves(results, game, arm)]
    return [value for value in values if value is not None]


def _curves(results: Results, game: Game, arm: str) -> list[Curve]:
    return [
        record.curve
        for record in results.records.values()
        if record.arm == arm and record.env.casefold() == game.env.casefold()
    ]


def curves_as_published(
    results: Results, game: Game, arm: str, frames: Sequence[int], logged_every: int
) -> NDArray[np.float64]:
    """The arm's runs as the published curves would show them, (runs, frames); only those that reach all of these."""
    rows = [[as_published(curve, at, logged_every) for at in frames] for curve in _curves(results, game, arm)]
    whole = [[value for value in row if value is not None] for row in rows]
    return np.array([row for row in whole if len(row) == len(frames)])


def draw(results: Results, folder: Path, name: str, arms: Mapping[str, str] = PUBLISHED) -> list[Path]:
    """Our curves with the published points."""
    from pser.studies.own_figures import draw_beside_published

    return draw_beside_published(results, arms, folder, name)


STUDY = Study(
    name="check",
    question="Are our learning curves those that others published for the same set-up?",
    arms=(UNIFORM, PER_LOSS),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway"), Game(env="minatar:asterix")),
    seeds=3,
    settings={
        "alpha": 0.6,
        "beta": 0.4,
        "beta_end": 0.46,  # 0.4 → 1 over 5M frames, of which these runs have a tenth
        "budget_frames": 500_000,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 50_000,
        "tensorboard": False,
    },
    stopping="after 3 seeds; our mean at 250,000 and 500,000 frames must lie within two standard errors (of the "
    "difference) of the published one, or an experiment must explain why not",
    core_hours=4,
    tell=tell,
    figures={"published": draw},
)
