"""Carry out many runs through an executor, and show how they stand."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from pathlib import Path

from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import to_json
from pser.records.folder import RunFolder
from pser.records.manifest import read_manifest, settings_of
from pser.run.board import Board
from pser.run.executor import Executor
from pser.run.job import Job

LOOK_SECONDS = 1.0
"""How often it is asked which runs have begun."""


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
    whole = [job for job in jobs if job.state == "finished"]
    before = {job.name for job in whole}
    waiting = {executor.submit(job): job for job in jobs if job.name not in before}
    failed = []
    with Board(jobs, whole, where=where) as board:
        for number, job in enumerate(whole, 1):
            finished(job)
            board.say(f"[{number}/{len(jobs)}] {job.name}: was finished before")
        while waiting:
            for future, job in waiting.items():
                board.move(job, "running" if future.running() else "waiting")
            ended, _ = wait(waiting, timeout=_patience(deadline), return_when=FIRST_COMPLETED)
            for future in ended:
                job, outcome = waiting.pop(future), future.result()
                board.move(job, "failed" if outcome.code else "finished")
                if outcome.code:
                    failed.append(job)
                else:
                    finished(job)
                ending = f"failed: {outcome.message}" if outcome.code else "finished"
                place = f" (on {outcome.where})" if outcome.where else ""
                board.tell(job, f"{ending}{place}")
            if waiting and deadline is not None and time.monotonic() >= deadline:
                raise TimeUpError
    return failed


def _patience(deadline: float | None) -> float:
    """Seconds until the next look, or until the time is up."""
    if deadline is None:
        return LOOK_SECONDS
    return min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))
