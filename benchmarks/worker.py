"""One library in its own process: builds what it is asked to, times one repetition when it is asked to.

Reads one JSON command per line on standard input, answers with one JSON line. The libraries' own prints go to
standard error.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import json
import os
import sys
import time
import warnings
from typing import Any, TextIO

from benchmarks.cold import REPEATS, AfterNetwork
from benchmarks.peer import Case, Peer, Scenario, load_peer
from benchmarks.workload import Workload


def resident_bytes() -> int:
    """Resident memory of this process, freed blocks given back to the system first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def time_case(case: Case, iterations: int) -> tuple[float, float]:
    """CPU and wall nanoseconds per iteration over one repetition, after a tenth of it untimed."""
    if isinstance(case, AfterNetwork):
        took = case.time_ns(iterations)
        return took, took
    for i in range(max(2, iterations // 10)):
        case(i)
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    for i in range(iterations):
        case(i)
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    return cpu / iterations, wall / iterations


def calibrate(case: Case, target_ns: float) -> int:
    """Iterations that take about `target_ns`."""
    if isinstance(case, AfterNetwork):
        return REPEATS
    iterations = 1
    while True:
        duration = time_case(case, iterations)[0] * iterations
        if duration > target_ns / 4:
            return max(1, round(iterations * target_ns / duration))
        iterations *= 4


def keeps_frames(scenario: Scenario) -> bool:
    """Whether its resident memory is asked for."""
    return scenario.split()[0] in ("atari", "compressed", "plain")


class Worker:
    """The commands."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._cases: dict[str, Case] = {}

    def describe(self) -> dict[str, Any]:
        """Name, notes and versions."""
        return {
            "name": self._peer.name,
            "notes": list(self._peer.notes),
            "versions": {d: importlib.metadata.version(d) for d in (*self._peer.distributions, "numpy")},
            "python": sys.version.split()[0],
        }

    def build(self, scenario: Scenario, capacity: int) -> dict[str, Any]:
        """Build a scenario; say which cases it has, how long it took and what memory it holds."""
        if keeps_frames(scenario):
            # A throwaway memory pays for lazy imports and compilation, which are not bytes per transition.
            small = self._peer.build(scenario, Workload(capacity=1000))
            for case in small.values():
                case(0)
            del small
        load = Workload(capacity=capacity)
        if scenario == "atari":
            load.frames  # noqa: B018  the source frames are no part of the memory
        before = resident_bytes()
        begin = time.monotonic()
        cases = self._peer.build(scenario, load)
        seconds = time.monotonic() - begin
        names = {f"{scenario}/{name}": case for name, case in cases.items()}
        self._cases.update(names)
        return {"cases": list(names), "seconds": seconds, "resident_bytes": resident_bytes() - before}

    def calibrate(self, case: str, target_ms: float) -> dict[str, Any]:
        """Iterations per repetition of a case."""
        return {"iterations": calibrate(self._cases[case], target_ms * 1e6)}

    def run(self, case: str, iterations: int) -> dict[str, Any]:
        """One repetition."""
        cpu, wall = time_case(self._cases[case], iterations)
        return {"cpu_ns": cpu, "wall_ns": wall}


def serve(worker: Worker, commands: TextIO, answers: TextIO) -> None:
    """Answer commands until the input ends."""
    for line in commands:
        command = json.loads(line)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
            sys.excepthook(type(error), error, error.__traceback__)
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """`python -m benchmarks.worker <module>`."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    gc.disable()  # as timeit does: a collection belongs to no one case
    serve(Worker(load_peer(sys.argv[1])), sys.stdin, answers)


if __name__ == "__main__":
    main()
