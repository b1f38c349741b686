"""An update beside that of the version before: the networks at hand, and a module of one's own by autograd."""

import sys
from typing import Any

import numpy as np

from benchmarks.train.update import TASKS
from benchmarks.train.versions import BEFORE, ensure_before, interleave, ratio_of

LIMITS = {
    "minatar": {"default": 1.0, "autograd": 1.10},
    "atari": {"default": 1.0, "autograd": 1.10},
    "mlp": {"default": 1.0, "autograd": 1.4},
}
"""Task → network → at most so many times the version before."""
NAMES = {
    "default": "network at hand",
    "autograd": "the same by autograd",
    "written": "as anybody would write it",
}


def measure(starts: int, rounds: int) -> dict[str, Any]:
    """Task → network → CPU milliseconds of an update, and times the version before's."""
    before = str(ensure_before())
    results: dict[str, Any] = {}
    for task, (_, _, _, updates) in TASKS.items():
        worker = ["-m", "benchmarks.train.update", task]
        commands = {"before": [before, *worker, "default"]}
        commands |= {name: [sys.executable, *worker, name] for name in NAMES}
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(starts):
            interleave(commands, rounds, spent)
        base = np.array(spent["before"])
        results[task] = {
            name: {"cpu_ms": 1e3 * float(np.median(found)) / updates, **ratio_of(np.array(found) / base)}
            for name, found in spent.items()
        }
        print(f"updates: {task}", file=sys.stderr, flush=True)
    return results


def section(results: dict[str, Any]) -> list[str]:
    """The results as a part of the page."""
    lines = [
        "",
        "## An update beside the version before",
        "",
        "One update with the settings of each family's preset (no Double Q, no clipping). *Before* is commit",
        f"{BEFORE[:7]}, which knew its own networks only, by a backward pass written by hand. *By autograd*: the",
        "network at hand inside a module that no fast path knows. *As anybody would write it*: `nn.Conv2d`,",
        "`nn.Linear` and `relu` in a class of one's own, which is recognised as a chain and takes the fast path.",
        "CPU time, one thread.",
        "",
        "| | CPU ms an update | × before | target | |",
        "|---|---|---|---|---|",
    ]
    for task, found in results.items():
        lines.append(f"| {task}, before | {found['before']['cpu_ms']:.3f} | 1 | | |")
        for name, label in NAMES.items():
            row, limit = found[name], LIMITS[task].get(name)
            times = f"{row['times']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
            target = " | |" if limit is None else f"≤ {limit:.2f} | {_verdict(row['times'] <= limit)} |"
            lines.append(f"| {task}, {label} | {row['cpu_ms']:.3f} | {times} | {target}")
    return lines


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"
