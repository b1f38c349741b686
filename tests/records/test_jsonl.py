"""Lines of JSON that can be cut back."""

import json

import pytest

from pser.errors import DamagedFileError
from pser.records.jsonl import JsonLines, newest_frames, newest_row


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_after_the_position_are_cut_and_the_rest_kept(tmp_path):
    path = tmp_path / "x.jsonl"
    first = JsonLines(path)
    first.append({"a": 1})
    position = first.sync()
    first.append({"a": 2})
    first.close()
    with open(path, "a") as file:
        file.write('{"a": 3')  # a crash in the middle of a line
    again = JsonLines(path, position)
    again.append({"a": 4})
    again.close()
    assert rows(path) == [{"a": 1}, {"a": 4}]


def test_a_new_run_starts_with_an_empty_file(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("left over\n")
    JsonLines(path).close()
    assert path.read_text() == ""


def test_numbers_json_has_not_become_null(tmp_path):
    lines = JsonLines(tmp_path / "x")
    lines.append({"a": float("nan"), "b": {"c": float("inf"), "d": 1.5}})
    lines.close()
    assert rows(tmp_path / "x") == [{"a": None, "b": {"c": None, "d": 1.5}}]


def test_a_file_shorter_than_its_checkpoint_says_is_refused(tmp_path):
    (tmp_path / "x").write_text("{}\n")
    with pytest.raises(DamagedFileError, match="has 3 bytes"):
        JsonLines(tmp_path / "x", 10)


def test_the_newest_whole_row_is_read(tmp_path):
    record = tmp_path / "train.jsonl"
    assert newest_row(record) == {}
    assert newest_frames(record) == 0
    record.write_text('{"frames": 1000}\n{"frames": 2000, "loss": 1}\n{"fra')
    assert newest_row(record) == {"frames": 2000, "loss": 1}
    assert newest_frames(record) == 2000


@pytest.mark.parametrize("line", ["no row", "[1]", '{"frames": null}', "{}"])
def test_a_row_that_cannot_be_read_counts_as_none(tmp_path, line):
    record = tmp_path / "train.jsonl"
    record.write_text(f"{line}\n")
    assert newest_row(record).get("frames") is None
    assert newest_frames(record) == 0
