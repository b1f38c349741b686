"""What a person sees while a run goes on: a live panel on a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

PLAIN_PERIOD_SECONDS = 10.0
"""Plain lines come at most this often; evaluations always have theirs."""


class Progress(Protocol):
    """Listens to a run."""

    def watch(self, frames: Callable[[], int], *, warmup_frames: int, budget_frames: int) -> None:
        """The run begins; `frames` tells at any moment how far it is."""

    def logged(self, row: dict[str, Any]) -> None:
        """A line of train.jsonl was written."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """A line of eval.jsonl was written."""

    def busy(self, what: str, total: int = 0, unit: str = "") -> "Busy":
        """Something else than training begins; as a context it ends, and its `done` counts up to `total`."""

    def said(self, message: str) -> None:
        """Something else worth a line happened."""

    def ended(self, message: str) -> None:
        """The run is over, as the message says."""

    def close(self) -> None:
        """Show nothing more."""


class Busy:
    """What a run does instead of training: its name, and how far it is."""

    def __init__(self, what: str, total: int, unit: str, over: Callable[[], None] = lambda: None) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self._over = over

    def __enter__(self) -> "Busy":
        return self

    def __exit__(self, *_: object) -> None:
        self._over()


class Quiet:
    """Shows nothing."""

    def watch(self, frames: Callable[[], int], *, warmup_frames: int, budget_frames: int) -> None:
        """Ignore it."""

    def logged(self, row: dict[str, Any]) -> None:
        """Ignore the row."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Ignore the row."""

    def busy(self, what: str, total: int = 0, unit: str = "") -> Busy:
        """Ignore it."""
        return Busy(what, total, unit)

    def said(self, message: str) -> None:
        """Ignore the message."""

    def ended(self, message: str) -> None:
        """Ignore the message."""

    def close(self) -> None:
        """Nothing to close."""


class PlainProgress(Quiet):
    """One line per report, for logs and pipes."""

    def __init__(self, budget_frames: int) -> None:
        self._budget = budget_frames
        self._last = 0.0
        self._learned_before = False

    def watch(self, frames: Callable[[], int], *, warmup_frames: int, budget_frames: int) -> None:
        """Take the budget, which may have been extended."""
        self._budget = budget_frames

    def logged(self, row: dict[str, Any]) -> None:
        """Print the row, unless one was printed just before."""
        now = time.monotonic()
        # The speed of an interval with warm-up in it says nothing about the rest.
        speed = row.get("frames_per_second") if self._learned_before else None
        self._learned_before = bool(row.get("updates"))
        if now - self._last < PLAIN_PERIOD_SECONDS and row["frames"] < self._budget:
            return
        self._last = now
        left = (self._budget - row["frames"]) / speed if speed else None
        cells = [
            ("frames", f"{row['frames']:,}/{self._budget:,}"),
            ("frames/s", number(row.get("frames_per_second"))),
            ("left", duration(left)),
            *numbers_of(row),
        ]
        print("  ".join(f"{name} {value}" for name, value in cells), flush=True)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Print the evaluation."""
        print(evaluation_line(row), flush=True)

    def said(self, message: str) -> None:
        """Print the message."""
        print(message, flush=True)

    def ended(self, message: str) -> None:
        """Print the message."""
        print(message, flush=True)


def make_progress(title: str, budget_frames: int) -> Progress:
    """The live panel if a person is looking and rich is there, plain lines otherwise."""
    if sys.stdout.isatty():
        try:
            from pser.run.panel import LiveProgress
        except ModuleNotFoundError:
            return PlainProgress(budget_frames)
        return LiveProgress(title, budget_frames)
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
    at = f"evaluation at {row['frames']:,} frames"
    if row["episodes"] == 1:  # which has no spread
        return f"{at}: return {row['mean_return']:.2f} of one episode{best}"
    return (
        f"{at}: mean return {row['mean_return']:.2f} ± {row['std_return']:.2f} "
        f"over {row['episodes']} episodes{best}"
    )


def numbers_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The numbers worth watching."""
    memory = row.get("memory", {})
    return [
        ("return", number(row.get("return_mean"))),
        ("episodes", number(row.get("episodes"))),
        ("epsilon", number(row.get("epsilon"))),
        ("loss", number(row.get("loss"))),
        ("q", number(row.get("q_mean"))),
        ("|td|", number(row.get("td_abs_mean"))),
        ("effective samples", number(memory.get("effective_sample_size"))),
        ("decayed mass", number(memory.get("decayed_share"))),
        ("max priority", number(memory.get("max_priority"))),
    ]


def number(value: float | None) -> str:
    """A number in few characters; a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds; a dash for a time that is not known."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(max(int(seconds), 0), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
