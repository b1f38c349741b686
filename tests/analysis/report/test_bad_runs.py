"""One bad run never loses the report of the others."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import ReportSettings, build_report
from pser.analysis.report.markdown import render_markdown
from pser.cli import main
from pser.files.json_text import parse_json

DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5_000
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


ENTRIES = (
    *("format", "env", "replay", "label", "seed", "settings", "preset", "command", "versions", "machine"),
    *("started", "commit", "state", "frames", "error"),
    *("mean_return", "episodes", "snapshot", "snapshot_frames", "returns"),
)


def report_of(folder):
    return build_report((folder,), ReportSettings(resamples=20))


@pytest.fixture
def runs(tmp_path):
    """A sweep of three good runs, and the folder of a fourth."""
    root = write_sweep(tmp_path / "runs", seeds=1)
    return root, write_run(root / "bad", Synthetic(seed=7, final=True))


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "text", [DEEP, LONG, f'{{"seed": {LONG}}}', f'{{"a": {DEEP}}}', "", "{", "\xff", "3"]
)
@pytest.mark.parametrize("file", ["manifest.json", "status.json", "final.json", "train.jsonl", "eval.jsonl"])
def test_a_file_that_is_no_json_loses_no_other_run(runs, file, text, capsys):
    root, bad = runs
    (bad / file).write_bytes(text.encode("latin-1"))
    report = report_of(root)
    assert len(report.runs.runs) >= 3
    assert [run.seed for run in report.runs.runs].count(0) == 3
    assert render_markdown(report, [], root)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("seed", value) for value in ("x", None, 1.5, [], True, float("nan"))),
        *(("settings", value) for value in (5, [], "x")),
        *(("machine", value) for value in (5, "x")),
        *((key, value) for key in ("env", "label", "replay") for value in (None, 5, {})),
    ],
)
def test_a_manifest_with_a_bad_entry_is_left_out_and_said(runs, key, value):
    root, bad = runs
    change(bad / "manifest.json", **{key: value})
    report = report_of(root)
    assert len(report.runs.runs) == 3
    assert any(f"no usable {key}: left out" in str(note) for note in report.notes)


@pytest.mark.parametrize(
    "status", [{}, {"state": None}, {"frames": 3}, {"state": 5, "error": [1]}, {"state": "failed"}]
)
def test_a_status_without_state_or_frames_is_borne(runs, status, capsys):
    root, bad = runs
    (bad / "status.json").write_text(json.dumps(status))
    assert len(report_of(root).runs.runs) == 4
    assert main(["report", str(root), "--out", str(root / "report.html"), "--resamples", "20"]) == 0


def test_a_run_first_evaluated_after_the_shortest_one_ended_is_left_out_of_the_scores(tmp_path):
    write_run(tmp_path / "short", Synthetic(frames=10_000, points=4))
    write_run(tmp_path / "long", Synthetic(frames=400_000, points=4, seed=1))
    report = report_of(tmp_path)
    assert len(report.runs.runs) == 2
    said = [str(note) for note in report.notes]
    assert any("in no score" in note for note in said), said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    file=st.sampled_from(["manifest.json", "status.json", "final.json"]),
    key=st.sampled_from(ENTRIES),
    value=ANYTHING,
)
def test_whatever_an_entry_holds_the_other_runs_are_reported(tmp_path_factory, file, key, value):
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "good", Synthetic())
    bad = write_run(root / "bad", Synthetic(seed=7, final=True))
    change(bad / file, **{key: value})
    report = report_of(root)
    assert "good" in {run.name for run in report.runs.runs}
    assert render_markdown(report, [], root)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    file=st.sampled_from(["train.jsonl", "eval.jsonl"]),
    key=st.sampled_from(["frames", "mean_return", "return_mean", "memory", "frames_per_second"]),
    value=ANYTHING,
)
def test_whatever_a_record_holds_the_other_runs_are_reported(tmp_path_factory, file, key, value):
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "good", Synthetic())
    bad = write_run(root / "bad", Synthetic(seed=7)) / file
    rows = [json.loads(line) for line in bad.read_text().splitlines()]
    rows[3] |= {key: value}
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = report_of(root)
    assert "good" in {run.name for run in report.runs.runs}
    assert render_markdown(report, [], root)


@pytest.mark.parametrize("text", [DEEP, LONG, "{", b"\xff"])
def test_json_that_cannot_be_read_is_one_kind_of_error(text):
    from pser.errors import DamagedFileError

    with pytest.raises(DamagedFileError, match="repair the file"):
        parse_json(text)
