"""The live panel of a run on a terminal."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pser.run.progress import Busy, duration, evaluation_line, number, numbers_of
from pser.run.screen import Screen

WIDEST = 100
SURE_SECONDS = 5.0
"""A speed is believed after this long."""


class Speed:
    """Frames per second of wall time since learning began, evaluations and checkpoints included."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def measured(self, now: float, frames: int, *, learning: bool) -> float | None:
        """The speed, once it is known; warm-up does not count, for it is much faster than learning."""
        if not learning:
            self._start = None
        elif self._start is None:
            self._start = now, frames
        elif now - self._start[0] >= SURE_SECONDS and frames > self._start[1]:
            return (frames - self._start[1]) / (now - self._start[0])
        return None


class LiveProgress:
    """A panel that is redrawn in place, whether or not the run has anything to report."""

    def __init__(self, title: str, budget_frames: int, console: Console | None = None) -> None:
        self._title, self._budget, self._warmup = title, budget_frames, 0
        self._frames: Callable[[], int] | None = None
        self._row: dict[str, Any] = {}
        self._evaluation = ""
        self._busy: Busy | None = None
        self._over = False
        self._speed = Speed()
        self._began = time.monotonic()
        self._screen = Screen(console or Console(), self.panel)
        self._screen.start()

    def watch(self, frames: Callable[[], int], *, warmup_frames: int, budget_frames: int) -> None:
        """The run begins: its bar moves by itself."""
        self._frames, self._warmup, self._budget = frames, warmup_frames, budget_frames

    def logged(self, row: dict[str, Any]) -> None:
        """Show the new numbers."""
        self._row = row

    def evaluated(self, row: dict[str, Any]) -> None:
        """Show the new evaluation."""
        self._evaluation = evaluation_line(row)

    def busy(self, what: str, total: int = 0, unit: str = "") -> Busy:
        """Show what keeps the frames from moving, with a bar of its own."""
        self._busy = Busy(what, total, unit, self._idle)
        return self._busy

    def said(self, message: str) -> None:
        """Print the message above the panel."""
        self._screen.say(message)

    def ended(self, message: str) -> None:
        """Leave the last state of the panel on the screen, if the run ever began, and print the message below."""
        self._over = True
        self._screen.stop(keep=self._frames is not None)
        self._screen.say(message)

    def close(self) -> None:
        """Take the panel away, if the run did not end well: its error follows."""
        self._screen.stop(keep=False)

    def _idle(self) -> None:
        self._busy = None

    def panel(self) -> Panel:
        """The panel as it is now."""
        parts: list[Any] = [self._bars()]
        if self._row:
            numbers = Table.grid(padding=(0, 2))
            cells = numbers_of(self._row)
            for start in range(0, len(cells), 3):
                numbers.add_row(*(_cell(name, value) for name, value in cells[start : start + 3]))
            parts.append(numbers)
        if self._evaluation:
            parts.append(Text(self._evaluation))
        return Panel(Group(*parts), title=Text(self._title), width=min(self._screen.width, WIDEST))

    def _bars(self) -> Table:
        """One bar for the run, and one for what it does now."""
        bars = Table.grid(padding=(0, 2), expand=True)
        bars.add_column(no_wrap=True)
        bars.add_column(ratio=1)
        bars.add_column(no_wrap=True, justify="right")
        now = time.monotonic()
        elapsed = duration(now - self._began)
        if self._frames is None:
            bars.add_row("starting", "", elapsed)
            return bars
        frames = self._frames()
        warming = frames < self._warmup
        speed = self._speed.measured(now, frames, learning=not warming)
        left = f"{duration((self._budget - frames) / speed)} left" if speed else "time left not known yet"
        bars.add_row("frames", _bar(frames, self._budget), f"{frames:,}/{self._budget:,}")
        if self._busy is not None:
            busy = self._busy
            count = f"{busy.done:,}/{busy.total:,} {busy.unit}" if busy.total else ""
            bars.add_row(busy.what, _bar(busy.done, busy.total) if busy.total else "", count)
        elif self._over:
            left = ""
        elif warming:
            bars.add_row("warm-up", _bar(frames, self._warmup), f"{frames:,}/{self._warmup:,} frames")
        else:
            bars.add_row("training", "", f"{number(speed)} frames/s" if speed else "")
        bars.add_row(Text("elapsed", style="dim"), Text(elapsed), left)
        return bars


def _bar(done: float, total: float) -> ProgressBar:
    return ProgressBar(total=max(total, 1), completed=min(done, total))


def _cell(name: str, value: str) -> Text:
    return Text.assemble((name, "dim"), " ", value)
