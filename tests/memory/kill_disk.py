"""Kill processes that add to memories on disk with SIGKILL at random moments, and look at what each leaves behind.

    python tests/memory/kill_disk.py --kills 50

Every transition tells by its action which step it is of, so that each one found again can be compared with what was
added. Fails if one differs, if the memory contradicts itself, or if a flush is lost.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pser

STACK, SHAPE = 3, (12, 20)
CAPACITY, FLUSHED_EVERY = 600, 90
KINDS = {
    "array": pser.Array((STACK, *SHAPE), np.uint8),
    "frames": pser.Frames(SHAPE, stack=STACK),
    "compressed": pser.Frames(SHAPE, stack=STACK, compress=True, capacity_bytes=10**6),
    "few bytes": pser.Frames(SHAPE, stack=STACK, compress=True, capacity_bytes=120_000),
}


def frame(step):
    """The frame of a step: a picture for every fifty, a few pixels for each."""
    screen = np.random.default_rng(step // 50).integers(0, 256, SHAPE).astype(np.uint8)
    screen.reshape(-1)[:4] = np.frombuffer(int(step).to_bytes(4, "little"), np.uint8)
    return screen


def observation(step):
    """What is seen before a step."""
    return np.stack([frame(step + k) for k in range(STACK)])


def reward(step):
    """Of a step."""
    return float(step % 7)


def make(kind, n_step, folder):
    """A new memory, or the one that was left there."""
    if (folder / "memory.pser").exists():
        return pser.ReplayMemory.load(folder)
    return pser.ReplayMemory(
        CAPACITY, KINDS[kind], n_step=n_step, gamma=1.0, seed=0, storage="disk", path=folder
    )


def play(memory, steps, first):
    """Add so many steps, with samples and updates on the way; returns the next one's number."""
    for step in range(first, first + steps):
        ends = step % 41 == 40
        memory.add(observation(step), step, reward(step), observation(step + 1), ends, False)
        if step % 5 == 0 and len(memory):
            batch = memory.sample(8)
            memory.update_priorities(batch.ids, batch.reward)
    return first + steps


def check(memory):
    """Every transition is one that was added."""
    memory.check_invariants()
    ids = np.arange(memory.index.oldest_id, memory.index.next_id)
    if not len(ids):
        return
    batch = memory[ids]
    for row, step in enumerate(batch.action.tolist()):
        end = 41 * (step // 41) + 41
        last = int.from_bytes(batch.next_observation[row][0].reshape(-1)[:4].tobytes(), "little")
        # Fewer steps at an episode's end, or where a process that opened the memory again began its own.
        assert step < last <= min(step + memory.n_step, end), f"{last} follows step {step}"
        assert np.array_equal(batch.observation[row], observation(step)), f"observation of step {step}"
        assert np.array_equal(batch.next_observation[row], observation(last)), f"next one of step {step}"
        assert batch.reward[row] == sum(reward(k) for k in range(step, last)), f"reward of step {step}"
        assert bool(batch.terminated[row]) == (last == end)
    assert (np.diff(batch.action) > 0).all()


def add_until_killed(kind, n_step, folder):
    """In the child: tell of every flush."""
    memory = make(kind, n_step, folder)
    memory.end_episodes()
    step = 41 * (memory.index.next_id + 41)  # an episode of its own
    print("ready", flush=True)
    while True:
        step = play(memory, random.randrange(1, FLUSHED_EVERY), step)
        memory.flush()
        print(memory.index.next_id, flush=True)


def kill_once(kind, n_step, folder, moments, latest):
    """Let a child add and kill it; returns how many ids its last flush told of, None if it told of none."""
    command = [sys.executable, __file__, "--child", kind, str(n_step), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        if moments.random() < 0.8:  # else perhaps while it opens the memory
            child.stdout.readline()
        time.sleep(moments.uniform(0.0, latest))
        child.kill()
        told = [line for line in child.stdout.read().split("\n")[:-1] if line != "ready"]
    return int(told[-1]) if told else None


def torture(kills, seed, folder):
    """Rows of (kind, n_step, kills, transitions looked at)."""
    moments = random.Random(seed)
    rows = []
    runs = [(kind, n_step) for kind in KINDS for n_step in (1, 3)]
    for number, (kind, n_step) in enumerate(runs):
        share = kills // len(runs) + (number < kills % len(runs))
        where, seen = folder / f"{number}", 0
        for _ in range(share):
            told = kill_once(kind, n_step, where, moments, 0.4)
            if not (where / "memory.pser").exists():
                assert told is None
                continue
            memory = pser.ReplayMemory.load(where)
            check(memory)
            assert memory.index.next_id >= (told or 0), "a flush is lost"
            if memory.index.next_id > CAPACITY:
                assert len(memory) > CAPACITY // 3, f"only {len(memory)} are left"
            seen += len(memory)
            if moments.random() < 0.5:
                memory.close()
            del memory
        rows.append((kind, n_step, share, seen))
    return rows


def main():
    """Torture, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        kind, n_step, folder = options.child
        add_until_killed(kind, int(n_step), Path(folder))
    with tempfile.TemporaryDirectory() as scratch:
        rows = torture(options.kills, options.seed, Path(scratch))
    print(f"{'kept as':<12} {'n_step':>6} {'kills':>6} {'transitions compared':>21}")
    for kind, n_step, kills, seen in rows:
        print(f"{kind:<12} {n_step:>6} {kills:>6} {seen:>21,}")


if __name__ == "__main__":
    main()
