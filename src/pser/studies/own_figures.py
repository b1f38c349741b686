"""Figures that single studies have of their own, beside those that every study has."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pser.analysis.colours import NOTE, PALETTE
from pser.analysis.published import published_figures
from pser.analysis.style import count_frames, new_grid, save, shared_legend
from pser.studies.check import BIN_FRAMES, LOGGED_EVERY, curves_as_published
from pser.studies.report import short_name, shown_games
from pser.studies.results import Results

REPLAYS = {"PSER": PALETTE[0], "PER": PALETTE[1], "uniform": PALETTE[2]}
"""The colours that these have everywhere."""
MARKERS = {"td": "o", "loss": "x"}
"""Signal → how its runs are marked."""


def draw_beside_published(
    results: Results, published_name: Mapping[str, str], folder: Path, name: str
) -> list[Path]:
    """A panel a game: our curves, read as the published ones were, and the published points over them."""
    games = shown_games(results)
    figure, panels = new_grid(len(games), 3, 3.6, 2.8)
    colours = {arm: REPLAYS[name] for arm, name in published_name.items()}
    for game, axes in zip(games, panels, strict=True):
        budget = results.study.budget_frames(game)
        frames = list(range(2 * BIN_FRAMES, budget + 1, BIN_FRAMES))
        for figures in published_figures(game.env):
            known = figures.frames <= budget
            for arm in [arm for arm, other in published_name.items() if other == figures.agent]:
                ours = curves_as_published(results, game, arm, frames, LOGGED_EVERY[figures.agent])
                if len(ours):
                    axes.plot(
                        frames, ours.mean(axis=0), "-", color=colours[arm], lw=1.4, label=f"{arm}, ours"
                    )
                if len(ours) > 1:
                    error = ours.std(axis=0, ddof=1) / np.sqrt(len(ours))
                    low, high = ours.mean(axis=0) - error, ours.mean(axis=0) + error
                    axes.fill_between(frames, low, high, color=colours[arm], alpha=0.2, lw=0)
                error = (figures.high - figures.mean)[known]
                axes.errorbar(
                    figures.frames[known], figures.mean[known], yerr=error, fmt="o", ms=5, mfc="none",
                    color=colours[arm], capsize=3, label=f"{arm}, published",
                )  # fmt: skip
        axes.set_title(short_name(game.env))
        axes.set_xlabel("frames")
        count_frames(axes)
    panels[0].set_ylabel("training return\n(mean ± standard error)")
    shared_legend(figure, panels, 4)
    return save(figure, folder, name)


def draw_over_sharpness(results: Results, folder: Path, name: str) -> list[Path]:
    """A panel a game: each run's measure over the power of |δ| by which it sampled, PER beside PSER."""
    from pser.studies.sharpness import NAMES, SETTINGS, exponent, name_of

    games = shown_games(results)
    figure, panels = new_grid(len(games), 3, 3.6, 2.8)
    for game, axes in zip(games, panels, strict=True):
        level = results.cells[game.env, "uniform"].mean
        if not np.isnan(level):
            axes.axhline(level, color=REPLAYS["uniform"], lw=1.2, ls="--", label="uniform replay")
        for replay, aside in (("per", -0.01), ("pser", 0.01)):
            colour, at_level = REPLAYS[replay.upper()], dict[float, list[float]]()
            for signal, alpha in SETTINGS:
                values = results.cells[game.env, name_of(replay, signal, alpha)].values
                x, marker = exponent(signal, alpha) + aside, MARKERS[signal]
                axes.plot(np.full(len(values), x), values, marker, ms=4, alpha=0.6, color=colour)
                at_level.setdefault(x, []).extend(values)
            means = sorted((x, float(np.mean(values))) for x, values in at_level.items() if values)
            if means:
                axes.plot(*zip(*means, strict=True), "-", color=colour, lw=1.4, label=NAMES[replay])
        axes.set_title(short_name(game.env))
        axes.set_xlabel("sampled by |δ| to the power of")
    panels[0].set_ylabel("measure of a run,\nline at the mean")
    for signal, told in (("td", "a run with |δ|"), ("loss", "a run with the loss")):
        panels[0].plot([], [], MARKERS[signal], ms=4, color=NOTE, label=told)
    shared_legend(figure, panels, 5)
    return save(figure, folder, name)
