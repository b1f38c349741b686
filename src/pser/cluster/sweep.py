"""The runs of a sweep as Ray tasks, each on whatever machine has room; lost ones go on elsewhere."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pser.cluster.engine import join_ray
from pser.errors import PserError
from pser.files.atomic import write_text
from pser.records.folder import RunFolder
from pser.run.executor import LocalProcesses, Outcome
from pser.run.job import Job

RETRIES = 3
"""How often a run is begun again after its worker or machine was lost."""
LOOK_SECONDS = 1.0
NODES_SECONDS = 3.0
"""How often Ray is asked which machines it still knows."""
CUT_OFF_SECONDS = 6.0
"""How long Ray has to begin a lost machine's runs again by itself. It does when their connections break; of a machine
cut off the network they do not, for many minutes."""
LOCK_SECONDS = 60.0
"""How long an attempt waits for the last one to let go of the folder, from the last change to its records: it may be
writing its last checkpoint, or go on where Ray does not reach it."""
STOP_SECONDS = 60.0
NOWHERE = ""
"""The machine of an attempt that has not begun: it may have to wait for room, or for its process to start."""


class RayTasks:
    """An executor of Ray tasks: each run takes `cpus` of the cluster, and its folder is on storage all machines see."""

    def __init__(self, address: str | None = None, cpus: float = 1.0) -> None:
        """Join the cluster at `address`, or start Ray on this machine; refuse runs that no machine has room for."""
        self._ray, self._own = join_ray(address)
        largest = max(
            (node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]), default=0.0
        )
        if cpus > largest:
            self._leave()
            raise PserError(
                f"a run of {cpus:g} CPUs fits on no machine of the cluster, the largest has {largest:g}: "
                "lower --cpus-per-run"
            )
        self._task = self._ray.remote(num_cpus=cpus, max_retries=RETRIES, scheduling_strategy="SPREAD")(
            _carry_out
        )
        self._waiting: dict[Any, tuple[Job, Future[Outcome]]] = {}
        self._missed: dict[Any, float] = {}
        """Task on a machine that Ray does not know any more → since when."""
        self._look_at = 0.0
        """When it is asked next which machines Ray knows."""
        self._changed = threading.Condition()
        self._stopped = False
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def submit(self, job: Job) -> "Future[Outcome]":
        """Carry out the job on a machine that has room; it is said to run once it does."""
        future: Future[Outcome] = Future()
        _note_of(job).unlink(missing_ok=True)
        ref = self._begin(job)
        with self._changed:
            self._waiting[ref] = job, future
            self._changed.notify()
        return future

    def _begin(self, job: Job) -> Any:
        absolute = replace(job, folder=job.folder.absolute())
        return self._task.options(name=job.name).remote(absolute.to_json(), os.getcwd())

    def where(self, job: Job) -> str:
        """The machine that carries the job out, and which attempt this is if not the first."""
        note = _read_note(_note_of(job))
        if note is None:
            return ""
        again = f", attempt {note['attempt']}" if note["attempt"] > 1 else ""
        return f"{note['node']}{again}"

    def __enter__(self) -> Self:
        """Start watching the tasks."""
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the jobs; after an error (Ctrl-C) stop them: a sweep started again resumes them."""
        with self._changed:
            left = list(self._waiting)
        if kind is not None and left:
            for ref in left:
                self._ray.cancel(ref)  # as Ctrl-C at the worker: the run writes a checkpoint and ends
            _, late = self._ray.wait(left, num_returns=len(left), timeout=STOP_SECONDS)
            for ref in late:
                self._ray.cancel(ref, force=True)
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._watcher.join()
        self._leave()

    def _leave(self) -> None:
        if self._own:
            self._ray.shutdown()

    def _watch(self) -> None:
        """Tell the futures what became of their tasks, or that nobody can say."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                refs = list(self._waiting)
            if not refs:
                return
            try:
                self._look_after(refs)
            except Exception as error:  # whatever it is: who waits for a future would wait for ever
                self._give_up(error)

    def _look_after(self, refs: list[Any]) -> None:
        """Tell of the tasks that began or ended, and begin those of cut-off machines again."""
        ended, running = self._ray.wait(refs, num_returns=1, timeout=LOOK_SECONDS)
        for ref in running:
            job, future = self._waiting[ref]
            if not future.running() and _read_note(_note_of(job)) is not None:
                future.set_running_or_notify_cancel()
        if time.monotonic() >= self._look_at:
            self._leave_cut_off_machines(running)
            self._look_at = time.monotonic() + NODES_SECONDS
        for ref in ended:
            job, future = self._waiting[ref]
            outcome = self._outcome(ref, job)
            with self._changed:
                del self._waiting[ref]
            _resolve(future, outcome)

    def _give_up(self, error: Exception) -> None:
        """Ray cannot be asked: its tasks, whether they go on or not, will not be heard of."""
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        with self._changed:
            left = list(self._waiting.values())
            self._waiting.clear()
        said = f"Ray failed ({what}): the same command goes on from here"
        for job, future in left:
            _resolve(future, Outcome(137, said, self.where(job)))

    def _leave_cut_off_machines(self, refs: Sequence[Any]) -> None:
        """Begin a run again whose machine is gone by Ray's own account, should Ray not have done so."""
        try:
            known = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        except (self._ray.exceptions.RayError, OSError, RuntimeError):
            return  # the head does not answer; Ray itself deals with that
        now = time.monotonic()
        for ref in refs:
            job, future = self._waiting[ref]
            note = _read_note(_note_of(job))
            if note is None or note["node_id"] in known or note["node_id"] == NOWHERE:
                self._missed.pop(ref, None)
                continue
            missed = now - self._missed.setdefault(ref, now)
            if missed >= CUT_OFF_SECONDS and note["attempt"] <= RETRIES:
                del self._missed[ref]
                self._ray.cancel(ref, force=True)  # lest Ray, too, begins it again when it notices
                with contextlib.suppress(
                    OSError
                ):  # as long as the next attempt has not begun, it is on no machine
                    write_text(_note_of(job), json.dumps({**note, "node_id": NOWHERE}) + "\n")
                again = self._begin(job)
                with self._changed:
                    del self._waiting[ref]
                    self._waiting[again] = job, future

    def _outcome(self, ref: Any, job: Job) -> Outcome:
        """How a task ended, and where; the note beside the folder is no longer needed."""
        where = self.where(job)
        with contextlib.suppress(OSError):
            _note_of(job).unlink(missing_ok=True)
        try:
            code, message = self._ray.get(ref)
        except self._ray.exceptions.TaskCancelledError:
            return Outcome(130, "stopped", where)
        except self._ray.exceptions.RayError as error:
            return Outcome(
                137, f"lost {RETRIES + 1} times ({type(error).__name__}), last on {where or '?'}", where
            )
        return Outcome(code, message, where)


def _resolve(future: "Future[Outcome]", outcome: Outcome) -> None:
    """Promised outcomes come to futures that run."""
    if not future.running():
        future.set_running_or_notify_cancel()
    future.set_result(outcome)


def _carry_out(text: str, directory: str) -> tuple[int, str]:
    """On the worker: the job in a process of its own, which goes on with what an earlier attempt left."""
    import ray

    # Whoever starts a sweep in the background of a shell makes it, and its workers, deaf to interrupts, and a
    # cancellation is one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = Job.from_json(text)
    with contextlib.suppress(OSError):
        os.chdir(directory)  # where a network of one's own may be imported from, if the machine has it
    try:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        note = _read_note(_note_of(job)) or {"attempt": 0}
        noted = {
            "node": ray.util.get_node_ip_address(),
            "node_id": ray.get_runtime_context().get_node_id(),
            "pid": os.getpid(),
            "attempt": note["attempt"] + 1,
        }
        write_text(_note_of(job), json.dumps(noted) + "\n")
        _await_lock(job.folder)
    except OSError as error:
        return (
            2,
            f"{error} on {ray.util.get_node_ip_address()}: is the folder on storage that all machines see?",
        )
    if job.state == "finished":  # by an attempt that went on out of Ray's reach
        return 0, ""
    with LocalProcesses(1) as executor:
        future = executor.submit(job)
        while not future.done():
            wait([future], timeout=0.5)  # a cancellation is an interrupt that does not wake a sleeping thread
    outcome = future.result()
    return outcome.code, outcome.message


def _await_lock(folder: Path) -> None:
    """Give an earlier attempt time to end; the run itself refuses a folder that is still in use."""
    changed, deadline = 0.0, time.monotonic() + LOCK_SECONDS
    while RunFolder(folder).manifest.exists() and time.monotonic() < deadline:
        try:
            with RunFolder(folder).locked():
                return
        except PserError:
            time.sleep(0.5)
        newest = _changed_at(RunFolder(folder).train)
        if newest != changed:
            changed, deadline = newest, time.monotonic() + LOCK_SECONDS


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _note_of(job: Job) -> Path:
    """Beside the run's folder, as its .log is: where the run is carried out."""
    return job.folder.with_name(job.folder.name + ".node")


def _read_note(path: Path) -> dict[str, Any] | None:
    try:
        note = json.loads(path.read_text())
        return {"node": str(note["node"]), "node_id": str(note["node_id"]), "attempt": int(note["attempt"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
