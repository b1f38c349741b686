"""The seams for a kind of storage of one's own: one class and its registration, in the kernel and in Python."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pser import spec
from pser.memory import columns
from pser.memory.columns import ArrayColumn
from strategies import memory_pair

from .games import MemoryDriver

KERNEL = Path(__file__).parents[2] / "src" / "kernel"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(
    COMPILER is None or not KERNEL.exists(), reason="needs a compiler and the kernel's source"
)
def test_a_column_of_ones_own_is_one_class_in_the_kernel(tmp_path):
    program = tmp_path / "toy"
    source = Path(__file__).with_name("toy_column.cpp")
    subprocess.run([COMPILER, "-std=c++17", "-Wno-psabi", f"-I{KERNEL}", source, "-o", program], check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[:-1] == [
        "0 0 2",  # from step 0 to where two steps led
        "1 100 102",
        "2 1 3",
        "3 101 103",
        "4 2 4",
        "5 3 4",  # the tail of the episode that ended
        "6 102 104",
    ]
    assert lines[-1].startswith("13 cannot be kept, row 0")


class OnDisk(spec.Array):
    """An array whose rows live in files."""


class DiskColumn(ArrayColumn):
    """As ArrayColumn, with arrays that live in files."""

    folder = "disk"

    def allocate(self, name, stored):
        path = Path(OnDisk.where) / name.replace("/", "-")
        return np.memmap(path, mode="w+", dtype=stored.dtype, shape=stored.shape)


def test_a_column_of_ones_own_is_one_class_in_python(monkeypatch, tmp_path):
    monkeypatch.setitem(columns.COLUMNS, OnDisk, DiskColumn)
    monkeypatch.setattr(OnDisk, "where", tmp_path, raising=False)
    memory, model = memory_pair(9, OnDisk((2,), np.float32), num_envs=2, n_step=2)
    rng = np.random.default_rng(0)

    class Game:
        def step(self, end):
            before, after = rng.normal(size=(2, 2)).astype(np.float32)
            return before, after, end == "terminated", False

    driver = MemoryDriver(memory, model, [Game(), Game()])
    for t in range(30):
        driver.step(["terminated" if t % 7 == 6 else "", ""])
    driver.compare_everything()
    newest = max(model.index.ids)
    on_disk = np.fromfile(tmp_path / "next-rows", np.float32).reshape(9, 2)
    assert on_disk[newest % 9].tolist() == model.transitions[newest].next_observation.tolist()
