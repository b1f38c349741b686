"""Two threads on one memory: one adds without pause, one samples and updates. Run by `make stress`."""

import sys
import threading
import time

import numpy as np

import pser

ENVS = 4


def main(seconds: float = 30.0) -> int:
    """Returns the exit code: 0 if every batch was whole and the invariants hold."""
    memory = pser.ReplayMemory(5_000, pser.Frames((8, 8), stack=4), num_envs=ENVS, seed=0)
    deadline = time.monotonic() + seconds
    added = updated = 0
    failures: list[BaseException] = []

    def add() -> None:
        nonlocal added
        rng = np.random.default_rng(0)
        stack = np.zeros((ENVS, 4, 8, 8), np.uint8)
        while time.monotonic() < deadline:
            frame = rng.integers(0, 256, (ENVS, 1, 8, 8), dtype=np.uint8)
            following = np.concatenate([stack[:, 1:], frame], axis=1)
            # The action repeats a pixel of the frame, so that a torn row shows.
            memory.add(
                stack,
                frame[:, 0, 0, 0].astype(np.int64),
                np.zeros(ENVS),
                following,
                rng.random(ENVS) < 0.01,
                rng.random(ENVS) < 0.01,
            )
            stack = following
            added += ENVS

    def learn() -> None:
        nonlocal updated
        rng = np.random.default_rng(1)
        while time.monotonic() < deadline:
            if len(memory) == 0:
                continue
            batch = memory.sample(32)
            if (batch.next_observation[:, -1, 0, 0] != batch.action).any():
                raise AssertionError("a batch row mixes two transitions")
            updated += memory.update_priorities(batch.ids, rng.normal(size=32))

    def guarded(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (add, learn)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.check_invariants()
    print(
        f"{seconds:.0f} s: {added:,} steps added, {updated:,} updates, invariants hold, failures: {failures or 'none'}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:2])))
