"""This memory beside itself before it was rebuilt: `python -m benchmarks.before`, the same cases in turns.

    python -m benchmarks.before [--quick]

Writes docs/benchmarks-before.md; with --quick a tenth of the capacities and a table on the screen alone.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np

from benchmarks.coordinate import WorkerProcess
from benchmarks.environments import ROOT
from benchmarks.machine import in_words, machine
from benchmarks.train.versions import BEFORE, ensure_before, ratio_of

SCENARIOS = (("index", 1_000_000), ("memory", 1_000_000), ("vector", 1_000_000), ("atari", 50_000))
NEW = "torch"
"""A word in the names of cases that the version before does not have."""
LIMIT = 1.05
"""Times before, at most."""
ROUNDS, TARGET_MS = 40, 20.0
PAGE = ROOT / "docs" / "benchmarks-before.md"


def measure(rounds: int, scale: float) -> dict[str, dict[str, list[float]]]:
    """Case → version → µs of CPU time an iteration, one value a round."""
    pythons = {"before": ensure_before(), "now": Path(sys.executable)}
    workers = {version: WorkerProcess("ours", python) for version, python in pythons.items()}
    cases: set[str] = set()
    for worker in workers.values():
        for scenario, capacity in SCENARIOS:
            cases |= set(worker.ask("build", scenario=scenario, capacity=int(capacity * scale))["cases"])
    cases = {case for case in cases if NEW not in case}
    calibrate = workers["before"].ask
    often = {
        case: calibrate("calibrate", case=case, target_ms=TARGET_MS)["iterations"] for case in sorted(cases)
    }
    times: dict[str, dict[str, list[float]]] = {case: {"before": [], "now": []} for case in often}
    turns, order = [(version, case) for version in workers for case in often], random.Random(0)
    for _ in range(rounds):
        order.shuffle(turns)
        for version, case in turns:
            took = workers[version].ask("run", case=case, iterations=often[case])
            times[case][version].append(took["cpu_ns"] / 1e3)
    for worker in workers.values():
        worker.close()
    return times


def table(times: dict[str, dict[str, list[float]]]) -> str:
    """A row a case, in Markdown."""
    lines = ["| | before, µs | now, µs | × before | |", "|---|---|---|---|---|"]
    for case, found in times.items():
        before, now = np.array(found["before"]), np.array(found["now"])
        ratio = ratio_of(now / before)
        verdict = "met" if ratio["times"] <= LIMIT else "**missed**"
        times_before = f"{ratio['times']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
        lines.append(
            f"| {case} | {np.median(before):.2f} | {np.median(now):.2f} | {times_before} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--quick", action="store_true", help="small memories, few rounds, nothing written")
    options = parser.parse_args()
    about = in_words(machine())
    rows = table(measure(8 if options.quick else ROUNDS, 0.1 if options.quick else 1.0))
    print(rows)
    if not options.quick:
        PAGE.write_text(
            f"""# The memory beside itself before

Written by `python -m benchmarks.before`; do not edit. {about}.

*Before* is commit {BEFORE[:7]}, the last before learners, rules, storage and files got seams of their own. Both
versions wait in processes of their own, full of the same transitions, and take turns in random order: medians of CPU
time over {ROUNDS} rounds, and of the ratio within a round with its 95 % interval. Asked for: at most {LIMIT}.

{rows}
""",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
