"""Snapshots come back as they were written; what is none is refused in one line."""

import numpy as np
import pytest

from pser.errors import DamagedFileError, PserError
from pser.files.container import write_container
from pser.records.folder import RunFolder
from pser.records.snapshot import Snapshot, read_snapshot, snapshot_path, write_snapshot


@pytest.mark.parametrize("mean_return", [None, 3.5])
def test_a_snapshot_comes_back(tmp_path, mean_return):
    written = Snapshot(400, mean_return, np.arange(5, dtype=np.float32))
    write_snapshot(RunFolder(tmp_path), "best", written)
    found = read_snapshot(RunFolder(tmp_path), "best")
    assert (found.frames, found.mean_return) == (400, mean_return)
    assert np.array_equal(found.weights, written.weights)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"frames": 1, "mean_return": None},
        {"frames": "1", "mean_return": None, "weights": np.zeros(1, np.float32)},
        {"frames": 1, "mean_return": None, "weights": [0.0]},
        {"frames": 1, "mean_return": None, "weights": np.zeros(1, np.float32), "more": 1},
    ],
)
def test_an_edited_snapshot_is_refused(tmp_path, content):
    folder = RunFolder(tmp_path)
    folder.snapshots.mkdir()
    write_container(snapshot_path(folder, "best"), content)
    with pytest.raises(DamagedFileError, match="must hold frames, mean_return, weights") as caught:
        read_snapshot(folder, "best")
    assert "\n" not in str(caught.value)


def test_a_missing_snapshot_says_when_there_will_be_one(tmp_path):
    with pytest.raises(PserError, match="first evaluation"):
        read_snapshot(RunFolder(tmp_path), "best")
