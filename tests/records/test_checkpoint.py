"""Checkpoints: two deep, whole or skipped."""

import numpy as np
import pytest

import pser
from pser.errors import PserError
from pser.files.container import write_container
from pser.records import checkpoint
from pser.records.checkpoint import checkpoint_paths, read_newest_checkpoint, write_checkpoint


def memory():
    made = pser.ReplayMemory(20, pser.Array((2,), np.float32), seed=0)
    for i in range(5):
        made.add(np.full(2, i, np.float32), 0, float(i), np.full(2, i + 1, np.float32), False, False)
    return made


def write(folder, *frames):
    for count in frames:
        write_checkpoint(folder, count, {"frames": count, "weights": np.arange(1000.0)}, memory())


def damage(path, position=-100):
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_the_newest_two_are_kept(tmp_path):
    write(tmp_path / "c", 10, 20, 3000)
    assert [path.name for path in checkpoint_paths(tmp_path / "c")] == [
        "frames-000000003000",
        "frames-000000000020",
    ]
    loaded = read_newest_checkpoint(tmp_path / "c")
    assert loaded.state["frames"] == 3000
    assert len(loaded.memory) == 5


def test_none_was_written(tmp_path):
    assert read_newest_checkpoint(tmp_path / "c") is None


@pytest.mark.parametrize("name", ["state.pser", "memory.pser"])
def test_a_damaged_newest_falls_back_with_a_warning(tmp_path, name):
    write(tmp_path / "c", 10, 20)
    damage(tmp_path / "c" / "frames-000000000020" / name)
    with pytest.warns(UserWarning, match="frames-000000000020 is damaged"):
        assert read_newest_checkpoint(tmp_path / "c").state["frames"] == 10


@pytest.mark.parametrize("name", ["state.pser", "memory.pser"])
def test_a_missing_file_falls_back_with_a_warning(tmp_path, name):
    write(tmp_path / "c", 10, 20)
    (tmp_path / "c" / "frames-000000000020" / name).unlink()
    with pytest.warns(UserWarning, match="frames-000000000020"):
        assert read_newest_checkpoint(tmp_path / "c").state["frames"] == 10


@pytest.mark.filterwarnings("ignore:checkpoint")
def test_all_damaged_is_an_error(tmp_path):
    write(tmp_path / "c", 10)
    damage(tmp_path / "c" / "frames-000000000010" / "state.pser")
    with pytest.raises(PserError, match="no checkpoint in"):
        read_newest_checkpoint(tmp_path / "c")


def test_a_damaged_checkpoint_is_replaced_when_the_run_passes_it_again(tmp_path):
    write(tmp_path / "c", 10, 20)
    damage(tmp_path / "c" / "frames-000000000020" / "state.pser")
    write(tmp_path / "c", 20)
    assert read_newest_checkpoint(tmp_path / "c").state["frames"] == 20


def test_an_interrupted_write_leaves_the_old_ones_and_is_cleared_later(tmp_path, monkeypatch):
    write(tmp_path / "c", 10)
    leftover = tmp_path / "c" / ".writing-12345"
    leftover.mkdir()
    (leftover / "memory.pser").write_bytes(b"half")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_container", full_disk)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "c", 20)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["frames-000000000010"]
    assert read_newest_checkpoint(tmp_path / "c").state["frames"] == 10


def test_a_checkpoint_bears_its_name_only_when_it_is_whole(tmp_path, monkeypatch):
    seen = []

    def spying(path, content):
        seen.append([folder.name for folder in checkpoint_paths(tmp_path)])
        write_container(path, content)

    monkeypatch.setattr("pser.records.checkpoint.write_container", spying)
    write_checkpoint(tmp_path, 10, {}, memory())
    write_checkpoint(tmp_path, 20, {}, memory())
    assert seen == [[], ["frames-000000000010"]]
