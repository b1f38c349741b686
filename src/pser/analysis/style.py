"""One look for every static figure: sizes, colours, and saving as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PALETTE = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#6f4fa0", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (after Okabe and Ito 2008)."""

_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "pser",  # the same figure gives the same SVG bytes
    "figure.constrained_layout.use": True,
}


def colour_of(label: str, labels: Sequence[str]) -> str:
    """A label's colour: PSER orange and PER blue as in the paper, uniform green, variants the others."""
    fixed = {"PSER_MaxPrio_MAX": PALETTE[0], "PER_MaxPrio": PALETTE[1], "Uniform": PALETTE[2]}
    if label in fixed:
        return fixed[label]
    free = [colour for colour in PALETTE if colour not in {fixed.get(name) for name in labels}]
    others = sorted(name for name in labels if name not in fixed)
    return free[others.index(label) % len(free)]


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes in the house style (inches)."""
    with plt.rc_context(_RC):
        return plt.subplots(figsize=(width, height))


def new_grid(panels: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `panels` axes in a grid; each panel is width × height inches."""
    columns = min(columns, panels)
    rows = -(-panels // columns)
    with plt.rc_context(_RC):
        figure, axes = plt.subplots(rows, columns, figsize=(columns * width, rows * height), squeeze=False)
    flat: list[Axes] = list(axes.flat)
    for unused in flat[panels:]:
        unused.set_visible(False)
    return figure, flat[:panels]


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg` into `folder` and close the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with plt.rc_context(_RC):
        figure.savefig(paths[0], dpi=160, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths
