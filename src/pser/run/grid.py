"""Carry out many runs through an executor, and show how they stand."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import to_json
from pser.records.folder import RunFolder
from pser.records.manifest import read_manifest, settings_of
from pser.run.executor import Executor, Outcome
from pser.run.job import Job

REFRESH_SECONDS = 5.0
RECORD_TAIL_BYTES = 1 << 16


class TimeUpError(Exception):
    """The time given to a grid is over."""


def refuse_other_settings(folder: Path, wanted: TrainSettings) -> None:
    """A run keeps the settings it was started with: do not let it pass for one with others."""
    if not RunFolder(folder).manifest.exists():
        return
    try:
        saved = to_json(settings_of(read_manifest(RunFolder(folder).manifest)))
    except PserError:
        return  # the run itself will say what is wrong with its manifest
    new = to_json(wanted)
    pairs = [
        (name, new[group].get(name), saved[group].get(name))
        for group in new
        for name in {**new[group], **saved[group]}
    ]
    other = [
        name for name, wish, there in pairs if wish != there and name != "env"
    ]  # spelled in several ways
    if other:
        raise PserError(
            f"{folder} holds a run with another {', '.join(other)}: use the same settings, or another --out"
        )


def carry_out(
    jobs: Sequence[Job],
    executor: Executor,
    *,
    finished: Callable[[Job], None] = lambda job: None,
    where: Callable[[Job], str] | None = None,
    deadline: float | None = None,
) -> list[Job]:
    """Run the jobs that are not finished, in order, report each as it ends, and return those that failed.

    `finished` is called for each run that is whole; after `deadline` (of `time.monotonic`) TimeUpError is raised.
    `where` tells which machine carries a job out, for a column of its own.
    """
    waiting: dict[Future[Outcome], Job] = {}
    done = 0
    for job in jobs:
        if job.state == "finished":
            done += 1
            finished(job)
            print(f"[{done}/{len(jobs)}] {job.name}: was finished before", flush=True)
        else:
            waiting[executor.submit(job)] = job
    failed = []
    states = {job.name: "finished" for job in jobs}
    with _Table(jobs, states, where) as table:
        while waiting:
            for future, job in waiting.items():
                states[job.name] = "running" if future.running() else "waiting"
            table.refresh()
            ended, _ = wait(waiting, timeout=_patience(deadline), return_when=FIRST_COMPLETED)
            for future in ended:
                job, outcome = waiting.pop(future), future.result()
                done += 1
                if outcome.code:
                    failed.append(job)
                else:
                    finished(job)
                states[job.name] = "failed" if outcome.code else "finished"
                ending = f"failed: {outcome.message}" if outcome.code else "finished"
                place = f" (on {outcome.where})" if outcome.where else ""
                table.say(f"[{done}/{len(jobs)}] {job.name}: {ending}{place}")
            if waiting and deadline is not None and time.monotonic() >= deadline:
                raise TimeUpError
        table.refresh()
    return failed


def _patience(deadline: float | None) -> float:
    """Seconds until the table wants to be redrawn or the time is up."""
    if deadline is None:
        return REFRESH_SECONDS
    return min(REFRESH_SECONDS, max(0.0, deadline - time.monotonic()))


class _Table:
    """The state of all runs, redrawn in place on a terminal; elsewhere only the lines that are said."""

    def __init__(
        self, jobs: Sequence[Job], states: dict[str, str], where: Callable[[Job], str] | None
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._jobs, self._states, self._where = jobs, states, where
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> "_Table":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the table."""
        if self._live:
            self._console.print(line, markup=False, highlight=False)
        else:
            print(line, flush=True)

    def refresh(self) -> None:
        """Read the runs' newest records, and redraw."""
        if not self._live:
            return
        from rich.table import Table

        table = Table("run", "state", *(["where"] if self._where else []), "frames", "last evaluation")
        for job in self._jobs:
            folder = RunFolder(job.folder)
            place = [self._where(job)] if self._where else []
            frames = newest(folder.train, "frames", ",.0f")
            table.add_row(
                job.name,
                self._states[job.name],
                *place,
                frames,
                newest(folder.evaluations, "mean_return", ".2f"),
            )
        self._live.update(table, refresh=True)


def newest(record: Path, key: str, how: str) -> str:
    """A number of the newest whole line of a record, or a dash."""
    try:
        with open(record, "rb") as file:
            file.seek(max(0, record.stat().st_size - RECORD_TAIL_BYTES))
            lines = file.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        return format(json.loads(whole[-1])[key], how)
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return "-"
