"""Checkpoints: two deep, whole or skipped."""

import itertools

import numpy as np
import pytest

import pser
from pser.errors import PserError
from pser.files.container import write_container
from pser.records import checkpoint
from pser.records.checkpoint import (
    CheckpointWriter,
    checkpoint_paths,
    read_newest_checkpoint,
    write_checkpoint,
)


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


def grow(grown, steps=5):
    for i in range(steps):
        grown.add(np.full(2, i, np.float32), 0, float(i), np.full(2, i + 1, np.float32), False, False)


def written(folder, count):
    """So many checkpoints of a growing memory, and the writer."""
    writer, grown = CheckpointWriter(folder), pser.ReplayMemory(200, pser.Array((2,), np.float32), seed=0)
    for number in range(count):
        grow(grown)
        writer.write(number, {"frames": number}, grown)
        grow(grown, 1)
    writer.wait()
    return writer


def inodes(path):
    return {file.stat().st_ino for file in path.iterdir()}


def test_the_two_that_are_kept_share_no_file(tmp_path):
    for count in range(2, 7):
        folder = tmp_path / str(count)
        written(folder, count)
        newest, other = checkpoint_paths(folder)
        assert not inodes(newest) & inodes(other)


def test_a_checkpoint_links_the_parts_of_the_one_before_the_last(tmp_path):
    writer, grown = CheckpointWriter(tmp_path), pser.ReplayMemory(200, pser.Array((2,), np.float32), seed=0)
    seen = []
    for number in range(5):
        grow(grown)
        writer.write(number, {"frames": number}, grown)
        writer.wait()
        seen.append(inodes(checkpoint_paths(tmp_path)[0]))
    assert [bool(new & old) for old, new in itertools.pairwise(seen)] == [False] * 4
    assert [bool(new & old) for old, new in zip(seen, seen[2:], strict=False)] == [True] * 3


def test_a_damaged_part_falls_back_with_a_warning(tmp_path):
    written(tmp_path, 6)
    newest = checkpoint_paths(tmp_path)[0]
    parts = [path for path in newest.iterdir() if path.name.startswith("memory.pser.")]
    assert len(parts) == 6  # rows and priorities of three times
    for part in parts:
        content = part.read_bytes()
        damage(part)
        with pytest.warns(UserWarning, match="frames-000000000005 is damaged"):
            assert read_newest_checkpoint(tmp_path).state["frames"] == 4
        part.write_bytes(content)
    assert read_newest_checkpoint(tmp_path).state["frames"] == 5


def test_a_checkpoint_is_of_the_moment_it_was_asked_for(tmp_path):
    writer, grown = CheckpointWriter(tmp_path), memory()
    state = {"frames": 1, "weights": np.zeros(3)}
    writer.write(1, state, grown)
    state["weights"][:] = 7.0
    grow(grown)
    writer.wait()
    loaded = read_newest_checkpoint(tmp_path)
    assert loaded.state["weights"].tolist() == [0.0, 0.0, 0.0]
    assert len(loaded.memory) == 5


def test_what_goes_wrong_in_the_background_is_raised_later_and_once(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    writer, grown = CheckpointWriter(tmp_path), memory()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_container", full_disk)
        writer.write(1, {"frames": 1}, grown)
        with pytest.raises(OSError, match="No space"):
            writer.wait()
    assert writer.completed() is None
    grow(grown)
    writer.write(2, {"frames": 2}, grown)
    writer.wait()
    assert writer.completed() == 2
    assert writer.completed() is None
    assert len(read_newest_checkpoint(tmp_path).memory) == 10
