"""Checkpoints of a large memory: what one after new steps takes beside a whole one, and how long training stands still.

Run by `make bench-checkpoint`. The checkpoints are a run's own (pser.records.checkpoint): each writes what is new since
the one before the last, so that the two that are kept share no file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import pser
from benchmarks.big import BYTES_A_TRANSITION, SPRITES, Player, status
from benchmarks.large import take_in
from benchmarks.machine import in_words, machine
from benchmarks.settings import FRAME, STACK
from pser.records.checkpoint import KEPT, CheckpointWriter


def filled(options: argparse.Namespace) -> Player:
    """A memory that is full, and every priority the outcome of some update."""
    count, compress = options.transitions, options.frames == "compressed"
    frames = pser.Frames(
        FRAME,
        stack=STACK,
        compress=compress,
        capacity_bytes=max(40_000_000, count * BYTES_A_TRANSITION) if compress else None,
    )
    player = Player(pser.ReplayMemory(count, frames, num_envs=len(SPRITES), seed=0))
    player.play(count + count // 100)
    ids = np.arange(player.memory.index.oldest_id, player.memory.index.next_id)
    errors = np.random.default_rng(1).exponential(size=len(ids))
    for start in range(0, len(ids), 100_000):
        player.memory.update_priorities(ids[start : start + 100_000], errors[start : start + 100_000])
    return player


def train(player: Player, steps: int) -> None:
    """New steps, one update of 32 in four."""
    for _ in range(10):
        player.play(steps // 10)
        player.learn(steps // 40)


def written(folder: Path, before: set[int]) -> tuple[int, set[int]]:
    """Bytes of the files that are new, and which there are."""
    files = {file.stat().st_ino: file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    return sum(size for node, size in files.items() if node not in before), set(files)


def one(writer: CheckpointWriter, frames: int, player: Player, while_writing: bool) -> dict[str, float]:
    """Write a checkpoint; with training going on, the longest step of it as well."""
    os.sync()
    began, busy = time.perf_counter(), time.process_time()
    here = time.thread_time()
    writer.write(frames, {}, player.memory)
    out = {"pause_ms": 1e3 * (time.perf_counter() - began), "pause_cpu_ms": 1e3 * (time.thread_time() - here)}
    longest = 0.0
    while while_writing and writer.is_writing():
        step = time.perf_counter()
        player.play(len(SPRITES))
        player.learn(1)
        longest = max(longest, time.perf_counter() - step)
    writer.wait()
    if while_writing:
        return out | {"longest_step_ms": 1e3 * longest}
    return out | {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - busy}


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, object]:
    """Whole and small checkpoints in turn, and one of each while training goes on."""
    player = filled(options)
    found: dict[str, list[dict[str, float]]] = {
        "whole": [],
        "changes": [],
        "whole_busy": [],
        "changes_busy": [],
    }
    kinds = ["whole", "whole"] + ["changes"] * options.small + ["changes_busy"]
    for round_number in range(options.rounds):
        for name, order in (("busy", ["whole_busy"]), ("idle", kinds)):
            folder = scratch / f"{name}-{round_number}"
            folder.mkdir()
            writer, nodes = CheckpointWriter(folder), set[int]()
            for frames, kind in enumerate(order):
                train(player, options.new)
                row = one(writer, frames, player, kind.endswith("_busy"))
                size, nodes = written(folder, nodes)
                found[kind].append(row | {"mb": size / 1e6})
            shutil.rmtree(folder)
        print(f"\rround {round_number + 1} of {options.rounds}", end="", flush=True)
    print()

    def middle(kind: str, name: str) -> float:
        return float(np.median([row[name] for row in found[kind]]))

    out: dict[str, object] = {"transitions": len(player.memory), "new": options.new, "kept": KEPT}
    for kind in ("whole", "changes"):
        for name in ("seconds", "cpu_seconds", "mb"):
            out[f"{kind}_{name}"] = middle(kind, name)
        pauses = [row for each in (kind, f"{kind}_busy") for row in found[each]]
        for name in ("pause_ms", "pause_cpu_ms"):
            out[f"{kind}_{name}"] = float(np.median([row[name] for row in pauses]))
            out[f"{kind}_{name}_most"] = max(row[name] for row in pauses)
        out[f"{kind}_longest_step_ms"] = middle(f"{kind}_busy", "longest_step_ms")
    for name in ("seconds", "cpu_seconds", "mb"):
        out[f"ratio_of_{name}"] = out[f"changes_{name}"] / out[f"whole_{name}"]  # type: ignore[operator]
    return out | {"peak_gb": status()["peak"], "resident_gb": status()["resident"]}


def main() -> None:
    """Measure, print, and write the numbers if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--frames", choices=["compressed", "plain"], default="compressed")
    parser.add_argument("--new", type=int, default=10_000, help="steps between two checkpoints")
    parser.add_argument("--rounds", type=int, default=3, help="each with two whole checkpoints")
    parser.add_argument("--small", type=int, default=3, help="checkpoints of what is new, in a round")
    parser.add_argument(
        "--folder", type=Path, help="where to write (default: the system's for temporary files)"
    )
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--record", action="store_true", help="also take them into docs/benchmarks-large.md")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="pser-checkpoint-", dir=options.folder))
    try:
        found = {"machine": machine(), "frames": options.frames} | measure(options, scratch)
    finally:
        shutil.rmtree(scratch)
    print(in_words(found["machine"]))
    for name, value in found.items():
        print(f"{name:<30} {value if not isinstance(value, float) else round(value, 4)}")
    if options.output:
        options.output.write_text(json.dumps(found, indent=2) + "\n")
    if options.record:
        take_in(found)


if __name__ == "__main__":
    main()
