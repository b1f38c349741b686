"""The paper's two bar charts, drawn from its own table."""

from collections.abc import Sequence
from pathlib import Path

from pser.analysis.colours import PALETTE, RULE
from pser.analysis.paper.recompute import GameRow, PaperAnalysis
from pser.analysis.style import new_figure, save

PSER_COLOUR, PER_COLOUR = PALETTE[0], PALETTE[1]


def draw_paper_figures(numbers: PaperAnalysis, folder: Path) -> list[Path]:
    """Write both charts as PNG and SVG; the paths written."""
    return [*_normalised_bars(numbers, folder), *_percent_change_bars(numbers, folder)]


def _normalised_bars(numbers: PaperAnalysis, folder: Path) -> list[Path]:
    """PSER − PER in human-normalised points, 55 games (after the paper's Fig. 5)."""
    rows = [(row, row.difference) for row in numbers.games if row.difference is not None]
    return _bars(
        rows,
        folder,
        "relative_performance",
        "PSER − PER, human-normalised points",
        f"Relative performance of PSER to PER, {len(rows)} games with human scores",
    )


def _percent_change_bars(numbers: PaperAnalysis, folder: Path) -> list[Path]:
    """Percent change of PSER over PER, 60 games (after the appendix's figure), with the sign repaired."""
    rows = [
        (row, row.signed_percent_change) for row in numbers.games if row.signed_percent_change is not None
    ]
    missing = [row.game for row in numbers.games if row.signed_percent_change is None]
    title = f"Percent change of PSER over PER, {len(rows)} games; 0/0 in {', '.join(missing)}"
    return _bars(
        rows, folder, "percent_change", "100·(PSER − PER) / |PER|, %", title, hatch=_sign_reversed(numbers)
    )


def _sign_reversed(numbers: PaperAnalysis) -> set[str]:
    """Games whose bar points the other way in the paper's own formula."""
    return {
        row.game
        for row in numbers.games
        if row.percent_change
        and row.signed_percent_change
        and row.percent_change != row.signed_percent_change
    }


def _bars(
    rows: Sequence[tuple[GameRow, float]],
    folder: Path,
    name: str,
    axis: str,
    title: str,
    hatch: set[str] | frozenset[str] = frozenset(),
) -> list[Path]:
    rows = sorted(rows, key=lambda pair: pair[1])
    figure, axes = new_figure(12.0, 5.2)
    positions = range(len(rows))
    values = [value for _, value in rows]
    colours = [PSER_COLOUR if value > 0 else PER_COLOUR for value in values]
    bars = axes.bar(positions, values, color=colours, width=0.75)
    for bar, (row, _) in zip(bars, rows, strict=True):
        if row.game in hatch:
            bar.set_hatch("////")
            bar.set_edgecolor("white")
    # Values span four orders of magnitude: linear within ±100%, logarithmic beyond.
    axes.set_yscale("symlog", linthresh=100, linscale=1.5)
    ticks = [
        t for t in (-1000, -100, -50, 0, 50, 100, 1000, 10_000) if 2 * min(values) <= t <= 2 * max(values)
    ]
    axes.set_yticks(ticks, [f"{tick:+,d}%" if tick else "0%" for tick in ticks])
    axes.minorticks_off()
    axes.axhline(0, color=RULE, linewidth=0.8)
    for level in (-100, 100):
        axes.axhline(level, color=RULE, linewidth=0.8, linestyle="--")
    axes.set_xticks(list(positions), [row.game for row, _ in rows], rotation=90, fontsize=7)
    axes.set_xlim(-0.8, len(rows) - 0.2)
    axes.set_ylabel(axis)
    axes.set_title(title, fontsize=10, loc="left")
    wins, losses = sum(v > 0 for v in values), sum(v < 0 for v in values)
    note = f"PSER higher: {wins}    PER higher: {losses}    equal: {len(values) - wins - losses}"
    if hatch:
        note += f"\nhatched: sign reversed by the paper's formula ({', '.join(sorted(hatch))})"
    axes.text(0.01, 0.97, note, transform=axes.transAxes, va="top", fontsize=9)
    return save(figure, folder, name)
