"""Many small runs on several cores, with progress, and going on where an interrupted command stopped.

The results of finished runs are appended to a JSONL file whose first line holds the settings they depend on.
A run is named by its task, a JSON object, and depends on nothing else: not on the order of runs, not on
`jobs`.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeAlias

from pser.errors import PserError
from pser.records.jsonl import JsonLines

Task: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]


def parse_states(words: Sequence[str]) -> tuple[int, ...]:
    """Numbers of states from words such as 13 or 2..12; sorted, each once, all positive."""
    chosen: set[int] = set()
    for word in words:
        first, _, last = word.partition("..")
        try:
            chosen |= set(range(int(first), int(last or first) + 1))
        except ValueError:
            raise PserError(f"states are numbers or ranges like 2..12; got {word!r}: write e.g. 13") from None
    if not chosen or min(chosen) < 1:
        raise PserError(f"a Blind Cliffwalk has at least 1 state; got {' '.join(words)}: choose larger")
    return tuple(sorted(chosen))


def check_jobs(jobs: int) -> None:
    """At least one process."""
    if jobs < 0:
        raise PserError(f"jobs is the number of processes, 0 for one per core; got {jobs}: choose 0 or more")


def make_folder(folder: Path) -> None:
    """Create the output folder, or say in one line why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-test-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise PserError(
            f"the output folder {folder} cannot be written ({error.strerror}): choose another --out"
        ) from error


class FinishedRuns:
    """The results already on disk, by task."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._results: dict[str, Result] = {}
        header = {"settings": json.loads(json.dumps(settings))}
        position = self._read(path, header) if path.exists() else 0
        self._file = JsonLines(path, position)
        if position == 0:
            self._file.append(header)

    def __contains__(self, task: Task) -> bool:
        return _key(task) in self._results

    def __getitem__(self, task: Task) -> Result:
        return self._results[_key(task)]

    def add(self, task: Task, result: Result) -> None:
        """Keep a result, on disk at once."""
        self._file.append({"task": task, "result": result})
        self._results[_key(task)] = json.loads(json.dumps(result))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, path: Path, header: dict[str, Any]) -> int:
        """Fill in what the file holds; the position after its last whole line (an interrupted one is
        dropped)."""
        whole = path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
            for row in lines[1:]:
                self._results[_key(row["task"])] = row["result"]
            there = dict(lines[0]["settings"]) if lines else header["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise PserError(f"{path} is damaged ({error}): remove it, or choose another --out") from error
        for name in sorted({*there, *header["settings"]}):
            old, new = there.get(name), header["settings"].get(name)
            if old != new:
                raise PserError(
                    f"{path} was made with {name} = {old}, not {new}: remove it, or choose another --out"
                )
        return len(whole)


def run_all(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    finished: FinishedRuns,
    *,
    jobs: int,
    cost: Callable[[Task], float],
    title: str,
) -> list[Result]:
    """The result of every task, in order; those not yet finished are run, the costliest first."""
    missing = sorted((task for task in tasks if task not in finished), key=cost, reverse=True)
    if len(missing) < len(tasks):
        print(f"{title}: {len(tasks) - len(missing)} of {len(tasks)} runs were finished before")
    if missing:
        with _progress(title, len(missing), sum(map(cost, missing))) as advance:
            for task, result in _results(missing, work, jobs or os.cpu_count() or 1):
                finished.add(task, result)
                advance(cost(task))
    return [finished[task] for task in tasks]


def _results(
    tasks: Sequence[Task], work: Callable[[Task], Result], jobs: int
) -> Iterator[tuple[Task, Result]]:
    """Each task with its result, in the order they come."""
    if jobs == 1 or len(tasks) == 1:
        for task in tasks:
            yield task, work(task)
        return
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(tasks))
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ignore_interrupts() -> None:
    """Ctrl-C is for the parent, which stops the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def _progress(title: str, runs: int, total: float) -> Iterator[Callable[[float], None]]:
    """A bar with the time left on a terminal, a line now and then elsewhere."""
    if sys.stdout.isatty():
        with _bar(title, total) as move:
            yield move
        return
    started = last = time.monotonic()
    done, cost_done = 0, 0.0

    def advance(cost: float) -> None:
        nonlocal done, cost_done, last
        done, cost_done = done + 1, cost_done + cost
        now = time.monotonic()
        if now - last >= 10.0 or done == runs:
            left = (now - started) * (total - cost_done) / cost_done
            took = f"{now - started:.0f} s, about {left:.0f} s left"
            print(f"{title}: {done} of {runs} runs, {took}", flush=True)
            last = now

    yield advance


@contextlib.contextmanager
def _bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda cost: progress.advance(bar, cost)


def _key(task: Task) -> str:
    return json.dumps(task, sort_keys=True)
