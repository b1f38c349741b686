"""What a piece of work took: wall time, CPU of this process, CPU of this process and all it started."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil


def of_all() -> dict[int, float]:
    """CPU seconds of the processes this one started, by their ids; Ray's own are among them."""
    spent = {}
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent[process.pid] = times.user + times.system
    return spent


def measured(work: Callable[[], Any], count: int) -> dict[str, float]:
    """Seconds for each of the `count` things that the work does."""
    before, own, wall = of_all(), time.process_time(), time.perf_counter()
    work()
    wall, own = time.perf_counter() - wall, time.process_time() - own
    after = of_all()
    others = sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
    return {"wall": wall / count, "own": own / count, "cpu": (own + others) / count}


def interleaved(turns: dict[str, Callable[[], dict[str, float]]], rounds: int) -> dict[str, Any]:
    """Each turn once a round, in an order that shifts; the first round warms up. Segments by the turn's name."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in turns}
    names = list(turns)
    for number in range(rounds + 1):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            segment = turns[name]()
            if number:
                found[name].append(segment)
    return found


def median(segments: Sequence[dict[str, float]], key: str) -> float:
    return float(np.median([segment[key] for segment in segments]))


def ratio(one: Sequence[dict[str, float]], other: Sequence[dict[str, float]], key: str) -> dict[str, float]:
    """Median of the rounds' own ratios, and a 95 % bootstrap interval of that median."""
    ratios = np.array([a[key] / b[key] for a, b in zip(one, other, strict=True)])
    drawn = np.random.default_rng(0).choice(ratios, (2_000, len(ratios)))
    low, high = np.percentile(np.median(drawn, 1), [2.5, 97.5])
    return {"median": float(np.median(ratios)), "low": float(low), "high": float(high)}
