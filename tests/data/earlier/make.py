"""How the files of this folder were made, by the version that introduced their format. Kept to tell what they hold.

PYTHONPATH=tests python tests/data/earlier/make.py tests/data/earlier
"""

import sys
from pathlib import Path

import numpy as np

import pser
from memory.games import FrameGame, MemoryDriver
from strategies import memory_pair

ENDS = ["", "", "", "", "terminated", "truncated", "life"]
STATE = {"frames": 7, "nested": {"a": np.arange(6).reshape(2, 3), "b": [np.float32([1.5, -2.0]), None, "x"]}}


def fill(steps: int = 40) -> MemoryDriver:
    """A memory with open episodes and pending steps, and its model."""
    memory, model = memory_pair(60, pser.Frames((2, 3), stack=3), num_envs=3, n_step=3, seed=4)
    driver = MemoryDriver(memory, model, [FrameGame((2, 3), 3, seed=e) for e in range(3)])
    rng = np.random.default_rng(0)
    for _ in range(steps):
        driver.step([str(rng.choice(ENDS)) for _ in range(3)])
    return driver


def fill_index() -> pser.PriorityIndex:
    """An index whose ring has wrapped."""
    index = pser.PriorityIndex(20, pser.PSER(), num_streams=2, seed=3)
    rng = np.random.default_rng(1)
    for t in range(15):
        index.append([t % 7 == 0, t % 5 == 0], td_error=rng.normal(size=2))
    return index


def fill_replayed_index() -> pser.PriorityIndex:
    """An index whose transitions were replayed and decayed: index-replayed.pser."""
    index = pser.PriorityIndex(12, pser.PSER(), num_streams=2, seed=4)
    rng = np.random.default_rng(0)
    for t in range(15):
        index.append((rng.random(2) < 0.1) | (t == 0), td_error=rng.normal(size=2) if t % 2 else None)
        index.update(index.sample(4)[0], rng.normal(size=4))
    return index


def fill_index_of_streams() -> pser.PriorityIndex:
    """An index of several streams, partly filled, that keeps apart what came by decay: index-streams.pser."""
    index = pser.PriorityIndex(100, pser.PSER(rho=0.8, retain="decayed"), num_streams=3, seed=5)
    rng = np.random.default_rng(2)
    for t in range(25):
        index.append((rng.random(3) < 0.1) | (t == 0), td_error=rng.normal(size=3) if t % 2 else None)
        index.update(rng.integers(0, index.next_id, 4), rng.normal(size=4))
    return index


if __name__ == "__main__":
    from pser.files.container import write_container

    folder = Path(sys.argv[1])
    fill().memory.save(folder / "memory.pser")
    fill_index().save(folder / "index.pser")
    fill_replayed_index().save(folder / "index-replayed.pser")
    fill_index_of_streams().save(folder / "index-streams.pser")
    write_container(folder / "state.pser", STATE)
