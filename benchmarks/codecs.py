"""Frames of real games compressed by this memory, by LZ4 and by Zstandard: `python -m benchmarks.codecs`.

Why the kernel has a codec of its own. LZ4 and Zstandard (those of pyarrow) compress each frame by itself; a batch is 32
times five frames, taken at random, and for this memory everything else that `sample` does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow

from benchmarks.environments import ROOT
from benchmarks.games import memory_of
from benchmarks.machine import in_words, machine
from benchmarks.settings import BATCH, GAMES, STACK
from benchmarks.worker import resident_bytes

PAGE = ROOT / "docs" / "benchmarks-codecs.md"
STEPS, ROUNDS, REPEATS = 15_000, 15, 30
CODECS = {"LZ4": "lz4_raw", "Zstandard": "zstd"}


def _microseconds(batch: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    for _ in range(REPEATS):
        batch()
    return (time.process_time_ns() - begin) / REPEATS / 1e3


def _by_codec(codec: pyarrow.Codec, frames: list[bytes]) -> tuple[float, Callable[[], object]]:
    """Bytes a frame, and what decodes a batch."""
    kept = [codec.compress(frame, asbytes=True) for frame in frames]
    rng, size = np.random.default_rng(0), len(frames[0])
    out = np.empty((BATCH, STACK + 1, size), np.uint8)

    def batch() -> None:
        for row, first in enumerate(rng.integers(0, len(kept) - STACK, BATCH)):
            for k in range(STACK + 1):
                made = codec.decompress(kept[first + k], size)
                out[row, k] = np.frombuffer(made, np.uint8)

    return statistics.mean(map(len, kept)), batch


def measure(game: str) -> list[str]:
    """A row of the page."""
    memory_of(game, 1_000, compress=True).sample(BATCH)  # what is loaded on the way is no part of the memory
    before = resident_bytes()
    memory = memory_of(game, STEPS, compress=True)
    held = (resident_bytes() - before) / STEPS
    newest = memory[np.arange(STEPS - len(memory), STEPS)].next_observation
    frames = [frame.tobytes() for frame in np.asarray(newest)[:, -1]]
    made = {name: _by_codec(pyarrow.Codec(codec), frames) for name, codec in CODECS.items()}
    ways: dict[str, Callable[[], object]] = {"pser": lambda: memory.sample(BATCH)}
    ways |= {name: batch for name, (_, batch) in made.items()}
    times = {name: [_microseconds(way) for _ in range(ROUNDS)] for name, way in ways.items()}
    figures = [f"{held:,.0f}", *(f"{size:,.0f}" for size, _ in made.values())]
    return [game, *figures, *(f"{statistics.median(taken):,.0f}" for taken in times.values())]


def main() -> None:
    """Measure, and write the page."""
    names = ["pser", *CODECS]
    header = ["", *(f"{name}, bytes" for name in names), *(f"{name}, µs" for name in names)]
    # A process each: what another game's frames took and left would be given out again, and counted wrongly.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = list(pool.map(measure, GAMES))
    lines = ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]]
    table = "\n".join(lines)
    print(table)
    PAGE.write_text(
        f"""# Codecs for frames

Written by `python -m benchmarks.codecs`; do not edit. {in_words(machine())}.

Frames of {STEPS:,} steps of games played at random. Bytes: of a transition with `compress=True`, all that is resident
counted, beside the mean length of a frame that LZ4 or Zstandard compresses by itself, nothing else counted (those of
pyarrow {pyarrow.__version__}). Time: {BATCH} times {STACK + 1} frames, CPU time, medians of {ROUNDS}; of this
memory a whole `sample`, of the others decoding frame by frame, called from Python.

{table}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
