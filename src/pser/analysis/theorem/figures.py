"""The paper's figure of Theorem 1, with the measured points and exact values on it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pser.analysis.colours import BLACK, NOTE, PALETTE
from pser.analysis.style import new_grid, save
from pser.analysis.theorem import steps as theorem
from pser.analysis.theorem.rows import Row, label

# Process (and η) → name in the legend, colour, marker.
PROOF = {
    "per_proof": ("PER", PALETTE[1], "o"),
    "pser_proof": ("PSER, decay once", PALETTE[0], "s"),
    "pser_proof_repeated": ("PSER, decay at each update", PALETTE[2], "^"),
    "pser_kept": ("PSER, early draws keep their priority", PALETTE[7], "x"),
}
ALGORITHM = {
    "per_algorithm": ("PER", PALETTE[1], "o"),
    "pser_algorithm_once η=0": ("PSER once, η=0", PALETTE[0], "s"),
    "pser_algorithm_once η=0.7": ("PSER once, η=0.7", PALETTE[4], "D"),
    "pser_algorithm_repeated η=0": ("PSER each update, η=0", PALETTE[2], "^"),
    "pser_algorithm_repeated η=0.7": ("PSER each update, η=0.7", PALETTE[3], "v"),
}
MAX_PRIO = {
    "per_maxprio": ("PER", PALETTE[1], "o"),
    "pser_maxprio η=0": ("PSER each update, η=0", PALETTE[2], "^"),
    "pser_maxprio η=0.7": ("PSER each update, η=0.7", PALETTE[3], "v"),
}
PAPER = {name.replace("algorithm", "paper"): style for name, style in ALGORITHM.items()}


def draw_theorem_figures(rows: Sequence[Row], folder: Path) -> None:
    """Write every figure as PNG and SVG."""
    save(steps_figure(rows, PROOF, "the proof's process"), folder, "theorem_proof")
    save(steps_figure(rows, ALGORITHM, "Algorithm 1, α=1, ε=0"), folder, "theorem_algorithm")
    save(steps_figure(rows, PAPER, "Algorithm 1, α=0.5, ε=1e-4, W=5"), folder, "theorem_paper")
    save(
        steps_figure(rows, MAX_PRIO, "Algorithm 1 from MaxPrio, α=0.5, ε=1e-4, W=5"),
        folder,
        "theorem_maxprio",
    )


def steps_figure(rows: Sequence[Row], shown: dict[str, tuple[str, str, str]], title: str) -> Figure:
    """Expected updates over n, a panel for each ρ: what is printed, exact (lines) and measured (points)."""
    rhos = sorted({row["rho"] for row in rows if row["rho"] is not None})
    figure, panels = new_grid(len(rhos), 2, 4.3, 3.1)
    states = sorted({row["states"] for row in rows})
    for place, (panel, rho) in enumerate(zip(panels, rhos, strict=True)):
        for name, (text, colour, marker) in shown.items():
            mine = sorted(
                (row for row in rows if label(row) == name and row["rho"] in (None, rho)),
                key=lambda row: int(row["states"]),
            )
            n = [row["states"] for row in mine]
            exact = [np.nan if row["exact"] is None else row["exact"] for row in mine]
            error = [0.0 if row["stderr"] is None else 3.0 * row["stderr"] for row in mine]
            panel.plot(n, exact, color=colour, linewidth=2.4, alpha=0.6)
            panel.errorbar(
                n,
                [row["mean"] for row in mine],
                yerr=error,
                fmt=marker,
                color=colour,
                markersize=5,
                linewidth=1,
                label=text,
            )
        _draw_printed(panel, states, rho)
        panel.set_yscale("log")
        panel.minorticks_off()
        panel.set_xticks(states)
        panel.set_title(f"ρ = {rho:g}", fontsize=10)
        if place >= len(rhos) - 2:
            panel.set_xlabel("states n")
        if place % 2 == 0:
            panel.set_ylabel("expected updates until Q = Q*")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=8.5)
    known = any(row["exact"] is not None for row in rows if label(row) in shown)
    lines = "solid lines: exact; " if known else ""
    note = f"{title}; points: Monte Carlo (± 3 standard errors); {lines}broken lines: as printed"
    figure.supxlabel(note, fontsize=8, color=NOTE)
    return figure


def _draw_printed(panel: Axes, states: Sequence[int], rho: float) -> None:
    """What the paper prints, above the measured lines: in places they coincide, and neither hides the other."""
    printed = {
        "printed: PER": ("--", [theorem.printed_per(n) for n in states]),
        "printed: PSER bound, main text": (":", [theorem.printed_bound_main(n, rho) for n in states]),
        "printed: PSER bound, appendix": ("-.", [theorem.printed_bound_appendix(n, rho) for n in states]),
    }
    for text, (dashes, values) in printed.items():
        panel.plot(states, values, dashes, color=BLACK, linewidth=1.5, label=text, zorder=4)
