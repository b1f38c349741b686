"""Where the runs of a sweep are carried out: here, or wherever another `Executor` takes them."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from pser.run.job import PARENT, Job

LOG_TAIL_BYTES = 4096


@dataclass(frozen=True)
class Outcome:
    """How a job ended: the exit code, its last line if that was not 0, and the machine if it may be another."""

    code: int
    message: str
    where: str = ""


class Executor(Protocol):
    """Takes jobs and promises their outcomes: what a cluster engine implements to replace the local pool.

    A job may run anywhere that sees its folder. It is resumed by running it again, so an engine may move it.
    """

    def submit(self, job: Job) -> "Future[Outcome]":
        """Carry out the job when there is room; the future never holds an exception of the job itself."""

    def __enter__(self) -> Self:
        """Start taking jobs."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let running jobs end (or, after an error, stop them)."""


class LocalProcesses:
    """A process of its own for each job, `jobs` at a time: a job that crashes takes no other with it."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def submit(self, job: Job) -> "Future[Outcome]":
        """Train in a new process; its output goes to a .log file beside the run's folder."""
        return self._threads.submit(self._carry_out, job)

    def _carry_out(self, job: Job) -> Outcome:
        if self._stopped:
            return Outcome(130, "not started")
        try:
            return self._run(job)
        except OSError as error:
            return Outcome(2, str(error))

    def _run(self, job: Job) -> Outcome:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        path = job.folder.with_name(job.folder.name + ".log")
        with open(path, "ab") as log:
            command = [sys.executable, "-m", "pser.run.job"]
            environment = os.environ | {PARENT: str(os.getpid())}
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.PIPE, env=environment
            )
            self._running.add(process)
            if self._stopped:  # while it was being started: nobody else ends it
                process.terminate()
            process.communicate(job.to_json().encode())
            self._running.discard(process)
        code = process.returncode
        if code < 0:
            return Outcome(code, f"killed by {signal.Signals(-code).name}")
        return Outcome(code, "" if code == 0 else _last_line(path) or f"exit code {code}")

    def __enter__(self) -> Self:
        """Start taking jobs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the jobs; after an error (Ctrl-C) stop them: a sweep started again resumes them."""
        if kind is not None:
            self._stopped = True
            for process in list(self._running):
                process.terminate()
        self._threads.shutdown(wait=True, cancel_futures=True)


def _last_line(path: Path) -> str:
    with open(path, "rb") as log:
        log.seek(max(0, os.path.getsize(path) - LOG_TAIL_BYTES))
        lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
