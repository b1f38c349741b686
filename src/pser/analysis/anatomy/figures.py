"""The figure of the anatomy page: mass by source, as stacked bars."""

from collections.abc import Sequence
from pathlib import Path

from pser.analysis.anatomy.page import Row
from pser.analysis.colours import PALETTE
from pser.analysis.style import new_figure, save

SOURCES = {"insertion": PALETTE[7], "retention": PALETTE[4], "own": PALETTE[1], "decay": PALETTE[0]}
"""Source → its colour; decay has PSER's."""


def draw_sources(rows: Sequence[Row], folder: Path, name: str = "anatomy") -> list[Path]:
    """One bar a case."""
    figure, axes = new_figure(7.0, 0.6 + 0.32 * len(rows))
    names = [case.name.strip("*") for case, _, _ in rows]
    left = [0.0] * len(rows)
    for source, colour in SOURCES.items():
        widths = [getattr(found, source) for _, _, found in rows]
        label = {"own": "own TD error", "retention": "η's retention"}.get(source, source)
        axes.barh(names, widths, left=left, color=colour, label=label, height=0.7)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the sampling mass")
    axes.grid(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return save(figure, folder, name)
