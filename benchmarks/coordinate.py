"""The interleaved run: each library waits in its own process, and a round asks each for one repetition."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.peer import Scenario
from benchmarks.settings import PLAYED

SMALL: tuple[tuple[Scenario, int], ...] = (
    ("index", 1_000_000),
    ("index-10m", 10_000_000),
    ("streams", 1_000_000),
    ("cold", 1_000_000),
    ("cold-10m", 10_000_000),
    ("memory", 1_000_000),
    ("vector", 1_000_000),
    ("sequences", 1_000_000),
    ("train", 100_000),
)
FRAMES: tuple[tuple[Scenario, int], ...] = (("atari", 100_000),)
REAL_FRAMES: tuple[tuple[Scenario, int], ...] = tuple(
    (f"{way} {game}", 30_000) for game in PLAYED for way in ("plain", "compressed")
)
PHASES = (SMALL, FRAMES, REAL_FRAMES)
"""Scenarios timed together, with their capacities; each phase has fresh processes."""

LOGS = ROOT / "build" / "bench-logs"


class WorkerFailed(RuntimeError):
    """A library could not do what it was asked; the message is its own."""


class WorkerProcess:
    """One library's process."""

    def __init__(self, module: str, python: Path) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        self.module = module
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with open(LOGS / f"{module}.log", "a") as log:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.worker", module],
                cwd=ROOT,
                env={**os.environ, **one_thread},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = (
            json.loads(line) if line else {"error": f"ended, see {LOGS / self.module}.log"}
        )
        if "error" in answer:
            raise WorkerFailed(f"{self.module}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass
class Measurements:
    """What a run measured."""

    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Module → name, notes, versions."""
    times_us: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(dict))
    """Case → module → µs of CPU time per iteration, one value per round."""
    wall_over_cpu: list[float] = field(default_factory=list)
    """Wall time over CPU time of every repetition: 1 on an idle machine."""
    resident_bytes: dict[str, float] = field(default_factory=dict)
    """Module → resident bytes per transition with stacked frames."""
    game_bytes: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Scenario of real frames → module → resident bytes per transition."""
    failures: list[str] = field(default_factory=list)
    """What could not be measured, in the library's own words."""


def measure(pythons: dict[str, Path], rounds: int, target_ms: float, scale: float = 1.0) -> Measurements:
    """Run all phases with the given libraries (module → interpreter)."""
    result = Measurements()
    for phase in PHASES:
        workers = {module: WorkerProcess(module, python) for module, python in pythons.items()}
        try:
            _run_phase(phase, workers, rounds, target_ms, scale, result)
        finally:
            for worker in workers.values():
                worker.close()
    return result


def _run_phase(
    phase: tuple[tuple[Scenario, int], ...],
    workers: dict[str, WorkerProcess],
    rounds: int,
    target_ms: float,
    scale: float,
    result: Measurements,
) -> None:
    turns: list[tuple[WorkerProcess, str, int]] = []
    for module, worker in workers.items():
        begin = time.monotonic()
        try:
            result.peers[module] = worker.ask("describe")
            cases: list[str] = []
            for scenario, capacity in phase:
                capacity = int(capacity * scale)
                built = worker.ask("build", scenario=scenario, capacity=capacity)
                cases += built["cases"]
                if scenario == "atari":
                    result.resident_bytes[module] = built["resident_bytes"] / capacity
                elif built["cases"] and phase is REAL_FRAMES:
                    result.game_bytes[scenario][module] = built["resident_bytes"] / capacity
            for case in cases:
                iterations = worker.ask("calibrate", case=case, target_ms=target_ms)["iterations"]
                turns.append((worker, case, iterations))
        except WorkerFailed as error:
            result.failures.append(str(error))
            print(f"  {error}", flush=True)
            continue
        print(f"  {module}: {len(cases)} cases, ready after {time.monotonic() - begin:.0f} s", flush=True)
    order = random.Random(0)
    begin = time.monotonic()
    for _ in range(rounds):
        order.shuffle(turns)
        for worker, case, iterations in turns:
            took = worker.ask("run", case=case, iterations=iterations)
            result.times_us[case].setdefault(worker.module, []).append(took["cpu_ns"] / 1e3)
            result.wall_over_cpu.append(took["wall_ns"] / took["cpu_ns"])
    print(f"  {rounds} rounds of {len(turns)} cases: {time.monotonic() - begin:.0f} s", flush=True)
