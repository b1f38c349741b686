"""One look for every static figure, and saving it as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from pser.analysis.colours import GRID

_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "pser",  # the same figure gives the same SVG bytes
    "figure.constrained_layout.use": True,
}


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


def count_frames(axes: Axes) -> None:
    """Numbers along the x-axis as 100k and 1M."""
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def count_percent(axes: Axes) -> None:
    """Shares along the x-axis as percentages."""
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def shared_legend(figure: Figure, panels: Sequence[Axes], columns: int) -> None:
    """One legend below all panels: each label once."""
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=8
        )


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg` into `folder` and close the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with plt.rc_context(_RC):
        figure.savefig(paths[0], dpi=160, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths
