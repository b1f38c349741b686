"""What a person sees while a run goes on: a live panel on a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

PLAIN_PERIOD_SECONDS = 10.0
"""Plain lines come at most this often; evaluations always have theirs."""


class Progress(Protocol):
    """Listens to a run's rows."""

    def logged(self, row: dict[str, Any]) -> None:
        """A line of train.jsonl was written."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """A line of eval.jsonl was written."""

    def busy(self, what: str) -> None:
        """Something that takes a while was begun."""

    def said(self, message: str) -> None:
        """Something else worth a line happened."""

    def close(self) -> None:
        """The run ended."""


class Quiet:
    """Shows nothing."""

    def logged(self, row: dict[str, Any]) -> None:
        """Ignore the row."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Ignore the row."""

    def busy(self, what: str) -> None:
        """Ignore it."""

    def said(self, message: str) -> None:
        """Ignore the message."""

    def close(self) -> None:
        """Nothing to close."""


class PlainProgress:
    """One line per report, for logs and pipes."""

    def __init__(self, budget_frames: int) -> None:
        self._budget = budget_frames
        self._last = 0.0

    def logged(self, row: dict[str, Any]) -> None:
        """Print the row, unless one was printed just before."""
        now = time.monotonic()
        if now - self._last < PLAIN_PERIOD_SECONDS and row["frames"] < self._budget:
            return
        self._last = now
        cells = dict(_cells(row, self._budget))
        print("  ".join(f"{name} {value}" for name, value in cells.items()), flush=True)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Print the evaluation."""
        print(evaluation_line(row), flush=True)

    def busy(self, what: str) -> None:
        """Say nothing: its result has a line."""

    def said(self, message: str) -> None:
        """Print the message."""
        print(message, flush=True)

    def close(self) -> None:
        """Nothing to close."""


class LiveProgress:
    """A panel that is redrawn in place."""

    def __init__(self, title: str, budget_frames: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title, self._budget = title, budget_frames
        self._row: dict[str, Any] = {"frames": 0}
        self._evaluation = self._busy = ""
        self._console = Console()
        self._live = Live(console=self._console, refresh_per_second=4)

    def logged(self, row: dict[str, Any]) -> None:
        """Redraw with the new numbers."""
        self._row = row
        self._redraw()

    def evaluated(self, row: dict[str, Any]) -> None:
        """Redraw with the new evaluation."""
        self._evaluation = evaluation_line(row)
        self._redraw()

    def busy(self, what: str) -> None:
        """Show what keeps the numbers from moving, until they move again."""
        self._redraw(f"{what} …")

    def said(self, message: str) -> None:
        """Print the message above the panel."""
        from rich.text import Text

        self._console.print(
            Text(message)
        )  # with markup=False the panel, drawn again below, would lose its own

    def close(self) -> None:
        """Leave the last state of the panel on the screen."""
        if self._live.is_started:
            self._redraw()
            self._live.stop()

    def _redraw(self, busy: str = "") -> None:
        self._busy = busy
        if not self._live.is_started:  # a run that is refused at once shows its error and nothing else
            self._live.start()
        self._live.update(self._panel())

    def _panel(self) -> Any:
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        cells = _cells(self._row, self._budget)
        for start in range(0, len(cells), 3):
            table.add_row(*(f"[dim]{name}[/] {value}" for name, value in cells[start : start + 3]))
        bar = Table.grid(expand=True)  # a bar by itself does not end its line
        bar.add_row(ProgressBar(total=self._budget, completed=min(self._row["frames"], self._budget)))
        return Panel(
            Group(bar, table, self._evaluation, Text(self._busy, style="dim")), title=self._title, width=100
        )


def make_progress(title: str, budget_frames: int) -> Progress:
    """The live panel if a person is looking and rich is there, plain lines otherwise."""
    if sys.stdout.isatty():
        try:
            return LiveProgress(title, budget_frames)
        except ModuleNotFoundError:
            pass
    return PlainProgress(budget_frames)


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar that the given function moves on by one; nothing where nobody looks or rich is missing."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ModuleNotFoundError:
        yield lambda: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def evaluation_line(row: dict[str, Any]) -> str:
    """One evaluation in words."""
    best = ", the best so far" if row["best"] else ""
    return (
        f"evaluation at {row['frames']:,} frames: mean return {row['mean_return']:.2f} "
        f"± {row['std_return']:.2f} over {row['episodes']} episodes{best}"
    )


def _cells(row: dict[str, Any], budget: int) -> list[tuple[str, str]]:
    """The numbers worth watching."""
    memory = row.get("memory", {})
    rate = row.get("frames_per_second")
    left = (budget - row["frames"]) / rate if rate else None
    return [
        ("frames", f"{row['frames']:,}/{budget:,}"),
        ("frames/s", _number(rate)),
        ("left", _duration(left)),
        ("return", _number(row.get("return_mean"))),
        ("episodes", _number(row.get("episodes"))),
        ("epsilon", _number(row.get("epsilon"))),
        ("loss", _number(row.get("loss"))),
        ("q", _number(row.get("q_mean"))),
        ("|td|", _number(row.get("td_abs_mean"))),
        ("effective samples", _number(memory.get("effective_sample_size"))),
        ("decayed mass", _number(memory.get("decayed_share"))),
        ("max priority", _number(memory.get("max_priority"))),
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(max(int(seconds), 0), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
