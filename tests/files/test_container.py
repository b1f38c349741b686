"""State files: what goes in comes out, damage is refused, a crash leaves the old file."""

import json

import numpy as np
import pytest

from pser.errors import DamagedFileError
from pser.files import archive
from pser.files.container import read_container, write_container

CONTENT = {
    "numbers": [1, 2.5, None, True, "text"],
    "big": 2**100,
    "nested": {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "deep": {"b": np.float32([1.5, -2.0])}},
    "list": [np.zeros((0, 4), np.uint8), np.array(3.25)],
    "strided": np.arange(10)[::2],
    "flags": np.array([True, False]),
}


def test_content_comes_back_with_types_and_shapes(tmp_path):
    write_container(tmp_path / "x", CONTENT)
    back = read_container(tmp_path / "x")
    assert back["numbers"] == CONTENT["numbers"]
    assert back["big"] == 2**100
    pairs = [
        (back["nested"]["a"], CONTENT["nested"]["a"]),
        (back["nested"]["deep"]["b"], CONTENT["nested"]["deep"]["b"]),
        (back["list"][0], CONTENT["list"][0]),
        (back["list"][1], CONTENT["list"][1]),
        (back["strided"], CONTENT["strided"]),
        (back["flags"], CONTENT["flags"]),
    ]
    for got, given in pairs:
        assert got.dtype == given.dtype
        assert got.shape == given.shape
        assert np.array_equal(got, given)
        assert got.flags.writeable


@pytest.mark.parametrize("position", [0, 9, 20, 200, -40, -1])
def test_a_changed_byte_is_refused(tmp_path, position):
    path = tmp_path / "x"
    write_container(path, CONTENT)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFileError):
        read_container(path)


@pytest.mark.parametrize("kept", [0, 7, 50, 0.5, 0.99])
def test_a_cut_file_is_refused(tmp_path, kept):
    path = tmp_path / "x"
    write_container(path, CONTENT)
    data = path.read_bytes()
    path.write_bytes(data[: kept if isinstance(kept, int) else int(kept * len(data))])
    with pytest.raises(DamagedFileError):
        read_container(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_container(path, {"a": 1})
    monkeypatch.setattr(archive, "END", None)  # fails in the middle
    with pytest.raises(TypeError):
        write_container(path, {"a": 2})
    monkeypatch.undo()
    assert read_container(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_pickled(tmp_path):
    with pytest.raises(TypeError):
        write_container(tmp_path / "x", {"a": object()})
    with pytest.raises((TypeError, ValueError)):
        write_container(tmp_path / "x", {"a": np.array([{}], dtype=object)})
    assert json.dumps({})  # the header is JSON
