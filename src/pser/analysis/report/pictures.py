"""The aggregates with their intervals as a picture made of boxes: places in percent of a panel's width."""

from dataclasses import dataclass

from pser.analysis.report.build import Report
from pser.analysis.report.comparison import STATISTICS


@dataclass(frozen=True)
class IntervalRow:
    """One label in a panel."""

    label: str
    colour: int
    """Number of the label whose colour marks it."""
    text: str
    at: float
    low: float | None
    """Where the bar begins; None without an interval."""
    width: float


@dataclass(frozen=True)
class IntervalPanel:
    """One aggregate, all labels on one scale."""

    title: str
    rows: tuple[IntervalRow, ...]
    ends: tuple[str, str]
    """The scale at the panel's left and right."""


def interval_panels(report: Report) -> list[IntervalPanel]:
    """A panel for each aggregate of several games (Agarwal et al. 2021, Fig. 9); none for a single game."""
    if not report.comparison.labels:
        return []
    return [_panel(report, name) for name in STATISTICS]


def _panel(report: Report, name: str) -> IntervalPanel:
    values = [(summary.label, summary.statistics[name]) for summary in report.comparison.labels]
    reach = [
        x for _, v in values for x in (v.value, *((v.interval.low, v.interval.high) if v.interval else ()))
    ]
    low, high = min(reach), max(reach)
    margin = 0.06 * (high - low) or 0.1
    low, high = low - margin, high + margin

    def place(x: float) -> float:
        return float(round(100 * (x - low) / (high - low), 2))

    rows = tuple(
        IntervalRow(
            label=label,
            colour=report.runs.labels.index(label),
            text=f"{value.value:.2f}",
            at=place(value.value),
            low=place(value.interval.low) if value.interval else None,
            width=place(value.interval.high) - place(value.interval.low) if value.interval else 0.0,
        )
        for label, value in values
    )
    title = f"{name} (less is better)" if name == "optimality gap" else name
    return IntervalPanel(title, rows, (f"{low:.2f}", f"{high:.2f}"))
