"""Figures of the anatomy: mass by source as stacked bars, and what insertion rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import pser
from pser.analysis.anatomy.arithmetic import Surprises, shrinking_insertion_share
from pser.analysis.anatomy.page import Row
from pser.analysis.anatomy.simulation import Set, simulate
from pser.analysis.anatomy.text import SOURCES, shares_of_row
from pser.analysis.colours import PALETTE
from pser.analysis.style import new_figure, save

COLOURS = dict(zip(SOURCES, (PALETTE[7], PALETTE[4], PALETTE[1], PALETTE[0]), strict=True))
"""Source → its colour; decay has PSER's."""


def draw_sources(rows: Sequence[Row], folder: Path, name: str = "anatomy") -> list[Path]:
    """One bar a case."""
    return draw_shares([(row[0].name.strip("*"), shares_of_row(row)) for row in rows], folder, name)


def draw_shares(rows: Sequence[tuple[str, Mapping[str, float]]], folder: Path, name: str) -> list[Path]:
    """Mass by source, one bar each."""
    figure, axes = new_figure(7.0, 0.8 + 0.32 * len(rows))
    left = [0.0] * len(rows)
    for source, colour in COLOURS.items():
        widths = [shares[source] for _, shares in rows]
        axes.barh([label for label, _ in rows], widths, left=left, color=colour, label=source, height=0.7)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the sampling mass")
    axes.grid(False)
    figure.legend(loc="outside upper center", ncols=4)
    return save(figure, folder, name)


LIVES = (4.0, 8.0, 32.0)
ETAS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)


def draw_insertion(surprises: Surprises, folder: Path, name: str = "anatomy_insertion") -> list[Path]:
    """What insertion rules over η, for few and many replays a life: lines predicted, dots simulated."""
    figure, axes = new_figure(6.0, 3.2)
    fine = np.linspace(0.0, 0.95, 40)
    for replays, colour in zip(LIVES, PALETTE, strict=False):
        predicted = [shrinking_insertion_share(surprises, float(eta), replays) for eta in fine]
        axes.plot(fine, predicted, color=colour, label=f"{replays:g} replays a life")
        what = (
            Set(prioritization=pser.PSER(eta=eta), replays=replays, capacity=5_000, surprises=surprises)
            for eta in ETAS
        )
        axes.plot(ETAS, [simulate(one).from_insertion for one in what], "o", color=colour, ms=4)
    axes.set_xlabel("η")
    axes.set_ylabel("mass ruled by insertion")
    axes.set_ylim(0, 1)
    axes.legend(loc="upper left")
    return save(figure, folder, name)
