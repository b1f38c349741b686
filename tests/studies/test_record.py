"""What is kept of a run."""

import json

import pytest

from pser.errors import PserError
from pser.studies.conduct import read_records
from pser.studies.measures import last_tenth, return_between, running_mean, whole_run
from pser.studies.record import LARGEST_BYTES, Record, read_record, thinned

from .synthetic import record, small_study


def example(**changes):
    study = small_study()
    return record(study, study.games[0], study.arms[0], 0, 1.5, **changes)[1]


def test_a_record_read_back_is_the_same(tmp_path):
    kept = example()
    kept.write(tmp_path / "game" / "seed-0.json")
    assert read_record(tmp_path / "game" / "seed-0.json") == Record(
        **json.loads(json.dumps(vars(kept)))  # JSON has lists for tuples
    )


def test_a_record_that_is_too_large_is_refused_and_nothing_written(tmp_path):
    kept = example(command="x" * LARGEST_BYTES)
    with pytest.raises(PserError, match="at most 60,000 bytes"):
        kept.write(tmp_path / "seed-0.json")
    assert not (tmp_path / "seed-0.json").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "study": "x"}'])
def test_what_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "seed-0.json").write_text(text)
    with pytest.raises(PserError, match="not a study's record"):
        read_record(tmp_path / "seed-0.json")


@pytest.mark.parametrize(
    "train",
    [
        {"frames": [], "return_count": [], "return_mean": []},
        {"frames": [10], "return_count": [1]},
        {"frames": [10, 20], "return_count": [1], "return_mean": [1.0]},
        {"frames": [10], "return_count": [1], "return_mean": [float("nan")]},
    ],
)
def test_a_record_without_a_whole_curve_is_refused(tmp_path, train):
    example(train=train).write(tmp_path / "seed-0.json")
    with pytest.raises(PserError, match="is not a study's record"):
        read_record(tmp_path / "seed-0.json")


def test_a_record_in_the_wrong_place_is_refused(tmp_path):
    example().write(tmp_path / "game" / "uniform" / "seed-0.json")
    assert list(read_records(tmp_path)) == ["game/uniform/seed-0"]
    example().write(tmp_path / "game" / "pser" / "seed-0.json")
    with pytest.raises(PserError, match="is the record of seed 0 of 'uniform': put it where it belongs"):
        read_records(tmp_path)


def test_merged_rows_keep_every_game():
    rows = [
        {"frames": 1, "return_count": 1, "return_mean": 4.0, "loss": 1.0, "memory.collapse": 0.1},
        {"frames": 2, "return_count": 0, "return_mean": None, "loss": None, "memory.collapse": 0.2},
        {"frames": 3, "return_count": 3, "return_mean": 8.0, "loss": 2.0, "memory.collapse": 0.3},
        {"frames": 4, "return_count": 2, "return_mean": 1.0, "loss": 5.0, "memory.collapse": 0.4},
    ]
    assert thinned(rows, 2) == [
        {"frames": 2, "return_count": 1, "return_mean": 4.0, "loss": 1.0, "memory.collapse": 0.2},
        {"frames": 4, "return_count": 5, "return_mean": 26 / 5, "loss": 3.5, "memory.collapse": 0.4},
    ]
    assert thinned(rows, 4) == rows


def test_measures_count_games_or_intervals():
    curve = [(10, 1, 0.0), (20, 0, 0.0), (90, 3, 2.0), (95, 1, 6.0), (100, 3, 2.0)]
    assert last_tenth(curve) == (6.0 + 3 * 2.0) / 4
    assert return_between(curve, 0, 20) == 0.0
    assert return_between(curve, 10, 20) is None
    assert whole_run(curve) == (0 + 0 + 2 + 6 + 2) / 5  # an interval without games repeats the one before
    assert whole_run([(10, 0, 0.0)]) is None


def test_the_running_mean_ends_in_the_measure_and_leaves_out_stretches_without_games():
    curve = [(10, 1, 0.0), (20, 0, 0.0), (90, 3, 2.0), (95, 1, 6.0), (100, 3, 2.0)]
    assert running_mean(curve) == [(10, 0.0), (90, 2.0), (95, 3.0), (100, last_tenth(curve))]
