"""How many runs stand: on a terminal a bar and a table that fit it, redrawn in place; elsewhere a line a run."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table

from pser.records.folder import RunFolder
from pser.records.jsonl import newest_frames, newest_row
from pser.run.job import Job
from pser.run.progress import duration
from pser.run.screen import Screen

SHOWN = ("failed", "running", "waiting", "finished")
"""States in the order in which runs are shown."""
OVER = frozenset({"failed", "finished"})
FRAMING_ROWS = 8
"""Rows of the terminal that are no run's: bar, head and lines of the table, the rest in short, the cursor's."""


class Board:
    """The runs and their states; as a context it is on the screen."""

    def __init__(
        self,
        jobs: Sequence[Job],
        finished: Sequence[Job] = (),
        *,
        where: Callable[[Job], str] | None = None,
        console: Console | None = None,
    ) -> None:
        """`finished` were so before; `where` tells which machine carries a job out, for a column of its own."""
        done = {job.name for job in finished}
        self._jobs, self._where = jobs, where
        self._states = {job.name: "finished" if job.name in done else "waiting" for job in jobs}
        self._console = console or Console()
        self._screen = Screen(self._console, self.panel) if self._console.is_terminal else None
        self._total = sum(_budget(job) for job in jobs)
        self._played = {job.name: _played(job) for job in jobs}
        self._began, self._before = time.monotonic(), self._frames()

    def __enter__(self) -> "Board":
        if self._screen:
            self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen:
            self._screen.stop(keep=True)

    @property
    def over(self) -> int:
        """Runs that need nothing more."""
        return sum(state in OVER for state in self._states.values())

    def move(self, job: Job, state: str) -> None:
        """The job is in this state now."""
        self._states[job.name] = state

    def say(self, line: str) -> None:
        """Print a line, above the table where there is one."""
        if self._screen:
            self._screen.say(line)
        else:
            print(line, flush=True)

    def tell(self, job: Job, ending: str) -> None:
        """Say that a run is over, and how long the others will take."""
        left = self.seconds_left()
        rest = "" if left is None else f", about {duration(left)} left"
        self.say(f"[{self.over}/{len(self._jobs)}] {job.name}: {ending}{rest}")

    def seconds_left(self) -> float | None:
        """What the frames still to be played will take at the pace so far; None if that is not known, or none are."""
        frames = self._frames()
        if frames <= self._before or self.over == len(self._jobs):
            return None
        return (self._total - frames) * (time.monotonic() - self._began) / (frames - self._before)

    def _frames(self) -> int:
        """Frames played so far, over all runs; only those of runs under way are read anew."""
        for job in self._jobs:
            state = self._states[job.name]
            if state == "running":
                self._played[job.name] = _played(job)
            elif state in OVER:
                self._played[job.name] = _budget(job)
        return sum(self._played.values())

    def panel(self) -> Group:
        """What is on the screen: runs under way and those that failed before the others, as many as fit."""
        ordered = sorted(self._jobs, key=lambda job: SHOWN.index(self._states[job.name]))
        room = max(1, self._console.height - FRAMING_ROWS)
        shown = Table()
        for name in ("run", "state", *(["where"] if self._where else []), "frames", "last evaluation"):
            shown.add_column(name, no_wrap=True)  # a row a run, or they would not fit
        for job in ordered[:room]:
            shown.add_row(*self._row(job))
        hidden = [self._states[job.name] for job in ordered[room:]]
        counts = [f"{hidden.count(state)} {state}" for state in SHOWN if state in hidden]
        return Group(self._bar(), shown, *([f"and {', '.join(counts)}"] if counts else []))

    def _bar(self) -> Table:
        bar = Table.grid(padding=(0, 2), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True, justify="right")
        left = self.seconds_left()
        told = "" if left is None else f", {duration(left)} left"
        bar.add_row(
            f"{self.over}/{len(self._jobs)} runs",
            ProgressBar(total=max(self._total, 1), completed=self._frames()),
            f"{duration(time.monotonic() - self._began)} elapsed{told}",
        )
        return bar

    def _row(self, job: Job) -> list[str]:
        folder = RunFolder(job.folder)
        state = self._states[job.name]
        place = [self._where(job)] if self._where else []
        frames = _shown(newest_row(folder.train), "frames", ",.0f")
        score = _shown(newest_row(folder.evaluations), "mean_return", ".2f")
        return [job.name, state, *place, frames, score]


def _budget(job: Job) -> int:
    return int(job.settings["run"]["budget_frames"])


def _played(job: Job) -> int:
    return min(newest_frames(RunFolder(job.folder).train), _budget(job))


def _shown(row: dict[str, Any], key: str, how: str) -> str:
    """A number of a record's row, or a dash."""
    try:
        return format(row[key], how)
    except (KeyError, TypeError, ValueError):
        return "-"
