"""Where files are written to and read from: paths, links, streams, beside what killed processes left."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

import pser
from pser.errors import DamagedFileError, PserError
from pser.files.atomic import replacing
from pser.files.container import is_container, read_container, write_container
from pser.records.checkpoint import checkpoint_paths, read_newest_checkpoint, write_checkpoint

CONTENT = {"n": 1, "a": np.arange(5)}


def memory():
    made = pser.ReplayMemory(20, pser.Array((2,), np.float32), seed=0)
    for i in range(5):
        made.add(np.full(2, i, np.float32), 0, float(i), np.full(2, i + 1, np.float32), False, False)
    return made


def index():
    made = pser.PriorityIndex(5, pser.PSER(), seed=0)
    made.append([True])
    return made


@pytest.mark.parametrize("make", [memory, index])
def test_a_stream_holds_what_a_file_holds(make, tmp_path):
    stream = io.BytesIO()
    make().save(stream)
    make().save(tmp_path / "x")
    assert stream.getvalue() == (tmp_path / "x").read_bytes()
    stream.seek(0)
    assert len(type(make()).load(stream)) == len(make())


def test_several_things_may_follow_each_other_in_one_stream():
    stream = io.BytesIO()
    stream.write(b"before")
    memory().save(stream)
    write_container(stream, CONTENT)
    stream.write(b"after")
    stream.seek(6)
    assert len(pser.ReplayMemory.load(stream)) == 5
    assert read_container(stream)["a"].tolist() == [0, 1, 2, 3, 4]
    assert stream.read() == b"after"


def test_a_stream_that_is_cut_is_refused():
    stream = io.BytesIO()
    write_container(stream, CONTENT)
    for length in range(0, len(stream.getvalue()), 7):
        with pytest.raises(DamagedFileError):
            read_container(io.BytesIO(stream.getvalue()[:length]))


@pytest.mark.parametrize(
    "place", [None, 3, io.StringIO(), "a\0b", b"bytes"], ids=["nothing", "number", "text", "nul", "bytes"]
)
def test_a_place_that_is_neither_path_nor_stream_of_bytes_is_refused_in_one_line(place):
    for call in (
        memory().save,
        index().save,
        pser.ReplayMemory.load,
        pser.PriorityIndex.load,
        read_container,
    ):
        with pytest.raises(PserError) as caught:
            call(place)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["/", "..", "", "."])
def test_a_file_without_a_name_is_refused_in_one_line(name):
    with pytest.raises(PserError, match="a name") as caught:
        memory().save(name)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing'$"):
        memory().save(tmp_path / "missing" / "x")


def test_a_stream_that_cannot_seek_cannot_be_loaded_from():
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out:
        index().save(out)
    with os.fdopen(read, "rb") as stream, pytest.raises(PserError, match="BytesIO"):
        pser.PriorityIndex.load(stream)


def dead_process():
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return int(done.stdout)


@pytest.mark.parametrize(
    "write", [lambda path: memory().save(path), lambda path: write_container(path, CONTENT)]
)
def test_the_next_write_removes_what_killed_processes_left_of_that_name(write, tmp_path):
    dead = dead_process()
    left = [f".x.{dead}.part", f".x.{dead}.tmp", f".x.{dead}-3.part"]
    kept = [f".x.{os.getpid()}.part", f".y.{dead}.part", f".x.{dead}.other", "x.part", ".x.me.part"]
    for name in left + kept:
        (tmp_path / name).write_bytes(b"half")
    write(tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "x"])


KILLED = """
import os, signal, sys, numpy as np, pser
from pser.files.atomic import replacing
from pathlib import Path
with replacing(Path(sys.argv[1])) as file:
    file.write(bytes(1000))
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_save_that_was_killed_leaves_nothing_after_the_next_one(tmp_path):
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False)
    assert len(list(tmp_path.iterdir())) == 1  # the second removed what the first had left
    memory().save(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_two_writers_in_one_process_do_not_share_a_file(tmp_path):
    with replacing(tmp_path / "x") as one, replacing(tmp_path / "x") as two:
        one.write(b"one")
        two.write(b"twotwo")
    assert (tmp_path / "x").read_bytes() == b"one"  # the last to finish
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_checkpoints_may_lie_in_a_folder_that_is_a_link(tmp_path):
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "checkpoints"
    link.symlink_to(elsewhere)  # to a folder that is yet to be made
    for frames in (10, 20, 30):
        write_checkpoint(link, frames, {"frames": frames}, memory())
    assert read_newest_checkpoint(link).state["frames"] == 30
    assert len(checkpoint_paths(elsewhere)) == 2


def test_a_checkpoint_may_itself_be_a_link(tmp_path):
    folder = tmp_path / "checkpoints"
    write_checkpoint(folder, 10, {"frames": 10}, memory())
    moved = (folder / "frames-000000000010").rename(tmp_path / "moved")
    (folder / "frames-000000000010").symlink_to(moved)
    assert read_newest_checkpoint(folder).state["frames"] == 10
    write_checkpoint(folder, 10, {"frames": 11}, memory())
    assert read_newest_checkpoint(folder).state["frames"] == 11
    for frames in (20, 30):
        write_checkpoint(folder, frames, {"frames": frames}, memory())
    assert [path.name for path in checkpoint_paths(folder)] == ["frames-000000000030", "frames-000000000020"]
    assert (moved / "state.pser").exists()  # the link was removed, not what it led to


def test_a_crafted_checkpoint_falls_back_to_the_older_one(tmp_path):
    from fuzz.crafted import Parts

    for name, key in (("memory.pser", "settings"), ("state.pser", "content")):
        folder = tmp_path / name
        for frames in (10, 20):
            write_checkpoint(folder, frames, {"frames": frames}, memory())
        path = folder / "frames-000000000020" / name
        parts = Parts(path.read_bytes())
        del parts.header[key]
        path.write_bytes(parts.joined())
        with pytest.warns(UserWarning, match="frames-000000000020 is damaged"):
            assert read_newest_checkpoint(folder).state["frames"] == 10


def test_a_file_tells_whether_it_is_a_container(tmp_path):
    write_container(tmp_path / "state", CONTENT)
    memory().save(tmp_path / "memory")
    (tmp_path / "other").write_bytes(b"hello")
    assert [is_container(tmp_path / name) for name in ("state", "memory", "other")] == [True, False, False]
