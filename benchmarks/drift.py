"""100 million random updates, then: does the root equal the sum of its leaves? Run by `make drift`."""

import math
import sys
import time

import numpy as np

import pser

CAPACITY = 1_000_000
BATCH = 100_000
TOLERANCE = 1e-12


def main(updates: int = 100_000_000) -> int:
    """Returns the exit code: 0 if nothing drifted."""
    index = pser.PriorityIndex(CAPACITY, pser.PSER(alpha=1.0), seed=0)
    rng = np.random.default_rng(1)
    streams = np.zeros(BATCH, np.int64)
    for _ in range(CAPACITY // BATCH):
        index.append(rng.random(BATCH) < 0.01, stream=streams)
    started = time.perf_counter()
    for done in range(0, updates, BATCH):
        index.update(rng.integers(0, CAPACITY, BATCH), rng.exponential(size=BATCH))
        if sys.stderr.isatty():
            print(f"\r{done + BATCH:,} of {updates:,} updates", end="", file=sys.stderr)
    root = index.stats()["total_mass"]
    leaves = math.fsum(index.priority(np.arange(CAPACITY)))
    drift = abs(root - leaves) / leaves
    verdict = "equal" if drift <= TOLERANCE else "DRIFTED"
    print(f"{updates:,} updates in {time.perf_counter() - started:.0f} s: root {root!r}, leaves {leaves!r}")
    print(f"relative difference {drift:.2e} (limit {TOLERANCE:g}): {verdict}")
    index.check_invariants()
    return 0 if drift <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
