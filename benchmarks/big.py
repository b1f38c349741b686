"""Ten million Atari transitions in one memory: resident size, add, sample, save. Run by `make bench-big`.

The frames are made up: sprites that move over a picture, as many as give each of eight environments about the bytes a
frame that a real game takes, compressed (from 112 in Breakout to 752 in Riverraid, 479 on average).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import pser
from benchmarks.large import take_in
from benchmarks.machine import in_words, machine
from benchmarks.settings import FRAME, STACK

SPRITES = {
    "Breakout": 2,
    "Pong": 2,
    "MsPacman": 6,
    "Seaquest": 8,
    "Enduro": 11,
    "Zaxxon": 11,
    "BattleZone": 13,
    "Riverraid": 14,
}
"""Moving sprites for each game whose bytes a frame are to be met."""
SIZE = 4
"""Of a sprite, in pixels."""
POOL_FRAMES = 3_000
BYTES_A_TRANSITION = 800
"""Room for compressed frames on disk."""


def pool(sprites: int, seed: int, frames: int = POOL_FRAMES) -> np.ndarray:
    """Frames of a picture over which textured sprites move, then the same backwards: a film without an end."""
    rng = np.random.default_rng(seed)
    picture = np.kron(rng.integers(0, 256, (12, 12)), np.ones((7, 7))).astype(np.uint8)
    textures = rng.integers(0, 256, (sprites, SIZE, SIZE)).astype(np.uint8)
    at, speed = rng.uniform(0, 77, (sprites, 2)), rng.uniform(-1.5, 1.5, (sprites, 2))
    film = np.empty((frames, *FRAME), np.uint8)
    for t in range(frames):
        film[t] = picture
        at += speed
        speed = np.where((at < 0) | (at > 76), -speed, speed)
        at = np.clip(at, 0, 76)
        for texture, (y, x) in zip(textures, at.astype(int), strict=True):
            film[t, y : y + SIZE, x : x + SIZE] = texture
    return np.concatenate([film, film[-2:0:-1]])


class Player:
    """Eight environments that show their films, a thousand steps an episode."""

    def __init__(self, memory: pser.ReplayMemory) -> None:
        self.memory = memory
        films = [pool(sprites, seed) for seed, sprites in enumerate(SPRITES.values())]
        self._film = np.stack(films, axis=1)  # (time, environment, height, width)
        self._time = 0
        self._rng = np.random.default_rng(0)

    def play(self, transitions: int) -> float:
        """Add so many; returns the seconds spent in `add`."""
        envs = len(SPRITES)
        no, spent = np.zeros(envs, bool), 0.0
        for _ in range(-(-transitions // envs)):
            start = self._time % (len(self._film) - STACK - 1)
            shown = np.ascontiguousarray(self._film[start : start + STACK + 1].swapaxes(0, 1))
            ends = no if self._time % 1000 != 999 else ~no
            actions, rewards = self._rng.integers(0, 18, envs), self._rng.normal(size=envs)
            now, following = np.ascontiguousarray(shown[:, :-1]), np.ascontiguousarray(shown[:, 1:])
            began = time.perf_counter()
            self.memory.add(now, actions, rewards, following, ends, no)
            spent += time.perf_counter() - began
            self._time += 1
        return spent

    def learn(self, batches: int) -> tuple[float, float]:
        """Median seconds of a sample of 32, and of the update that follows."""
        samples, updates = [], []
        for _ in range(batches):
            began = time.perf_counter()
            batch = self.memory.sample(32)
            samples.append(time.perf_counter() - began)
            errors = self._rng.normal(size=32)
            began = time.perf_counter()
            self.memory.update_priorities(batch.ids, errors)
            updates.append(time.perf_counter() - began)
        return float(np.median(samples)), float(np.median(updates))


def status() -> dict[str, float]:
    """Resident memory of this process in GB (of its own, of files), what of it is swapped out, and its peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"resident": "VmRSS", "own": "RssAnon", "of_files": "RssFile", "swapped": "VmSwap"}
    found = {name: int(lines[key].split()[0]) / 1e6 for name, key in names.items()}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def folder_bytes(path: Path) -> int:
    """Bytes of a save: its head and its parts."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, object]:
    """Fill, then measure each thing once; medians where it is done often."""
    count, compress = options.transitions, options.frames == "compressed"
    frames = pser.Frames(
        FRAME,
        stack=STACK,
        compress=compress,
        capacity_bytes=max(40_000_000, count * BYTES_A_TRANSITION) if compress else None,
    )
    place = {"storage": "disk", "path": scratch / "memory"} if options.storage == "disk" else {}
    memory = pser.ReplayMemory(count, frames, num_envs=len(SPRITES), seed=0, **place)
    player = Player(memory)
    out: dict[str, object] = {"status_empty_gb": status()}  # the films are part of it
    filled = 0
    adding: list[float] = []
    while filled < count + count // 100:  # the ring has turned a little
        step = min(100_000, count)
        adding.append(player.play(step) / step)
        filled += step
        print(f"\r{filled:,} of {count:,}", end="", flush=True)
    print()
    out["transitions"] = len(memory)
    out["add_us"] = 1e6 * float(np.median(adding))
    out["status_filled_gb"] = status()
    for name, batches in (("first", options.batches // 10), ("later", options.batches)):
        sample, update = player.learn(batches)
        out[f"sample_{name}_us"], out[f"update_{name}_us"] = 1e6 * sample, 1e6 * update
    if options.storage == "disk":
        began = time.perf_counter()
        memory.flush()
        out["flush_s"] = time.perf_counter() - began
    out |= saves(player, scratch / "saves", options)
    out["status_end_gb"] = status()
    return out


def saves(player: Player, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """A save of everything, two of what new steps changed, and what training notices of one in the background."""
    memory = player.memory
    out: dict[str, float] = {}
    folder.mkdir()
    for name, count in (("whole", 0), ("changes", options.new), ("changes_again", options.new)):
        if count:
            for _ in range(10):
                player.play(count // 10)
                player.learn(count // 40)  # one update in four steps
        os.sync()
        began = time.perf_counter()
        memory.save_changes(folder / "save")
        out[f"save_{name}_s"] = time.perf_counter() - began
        out[f"save_{name}_files_gb"] = folder_bytes(folder / "save") / 1e9
    out["changes_over_whole"] = out["save_changes_again_s"] / out["save_whole_s"]
    player.play(options.new)
    began = time.perf_counter()
    saving = memory.save_changes(folder / "save", background=True)
    out["snapshot_ms"] = 1e3 * (time.perf_counter() - began)
    longest = 0.0
    while memory._saving is not None:
        began = time.perf_counter()
        player.play(len(SPRITES))
        player.learn(2)
        longest = max(longest, time.perf_counter() - began)
    saving.wait()
    out["longest_step_while_saving_ms"] = 1e3 * longest
    began = time.perf_counter()
    if options.load:
        loaded = pser.ReplayMemory.load(folder / "save")
        out["load_s"], out["loaded"] = time.perf_counter() - began, len(loaded)
    return out


def main() -> None:
    """Measure, print, and write the numbers if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transitions", type=int, default=10_000_000)
    parser.add_argument("--storage", choices=["memory", "disk"], default="memory")
    parser.add_argument("--frames", choices=["compressed", "plain"], default="compressed")
    parser.add_argument("--batches", type=int, default=5_000, help="batches of 32 that are measured")
    parser.add_argument("--new", type=int, default=10_000, help="steps between two saves")
    parser.add_argument("--load", action="store_true", help="also load the save: needs the memory twice")
    parser.add_argument(
        "--folder", type=Path, help="where to write (default: the system's for temporary files)"
    )
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--record", action="store_true", help="also take them into docs/benchmarks-large.md")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="pser-big-", dir=options.folder))
    try:
        found = {"machine": machine(), "storage": options.storage, "frames": options.frames}
        found |= measure(options, scratch)
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
