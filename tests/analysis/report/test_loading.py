import json

import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.loading import load_runs
from pser.errors import PserError


def notes_of(loaded):
    return [str(note) for note in loaded.notes]


def test_runs_are_found_at_any_depth_and_each_once(tmp_path):
    write_sweep(tmp_path / "sweep", envs=("minatar:breakout", "atari:Pong"), seeds=2)
    loaded = load_runs(
        [tmp_path, tmp_path / "sweep", tmp_path / "sweep" / "atari-Pong" / "per-0" / "manifest.json"]
    )
    assert len(loaded.runs) == 12
    assert loaded.envs == ["atari:Pong", "minatar:breakout"]
    assert loaded.labels == ["PSER_MaxPrio_MAX", "PER_MaxPrio", "Uniform"]
    assert loaded.notes == ()


def test_names_drop_the_path_all_runs_share(tmp_path):
    write_sweep(tmp_path / "deep" / "er", replays=("per",), seeds=2)
    assert [run.name for run in load_runs([tmp_path]).runs] == ["per-0", "per-1"]
    single = load_runs([tmp_path / "deep" / "er" / "minatar-breakout" / "per-1"])
    assert [run.name for run in single.runs] == ["per-1"]


def test_records_come_back_as_written(tmp_path):
    write_run(tmp_path / "run", Synthetic(points=5, frames=1000, final=True))
    (run,) = load_runs([tmp_path]).runs
    assert (run.env, run.replay, run.seed, run.state) == ("minatar:breakout", "pser", 0, "finished")
    assert run.evaluation_series().frames.tolist() == [200, 400, 600, 800, 1000]
    assert len(run.metric_series("loss")) == 4  # the first row has none
    assert run.metric_series("memory.decayed_share").values[-1] == pytest.approx(0.4)
    assert len(run.metric_series("memory.no_such_thing")) == 0
    assert run.final["episodes"] == 20
    assert run.frames == 1000


def test_half_written_last_line_is_ignored_and_said(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(points=5))
    with (folder / "eval.jsonl").open("a") as file:
        file.write('{"frames": 600000, "mean_ret')
    loaded = load_runs([tmp_path])
    assert len(loaded.runs[0].evaluations) == 5
    assert notes_of(loaded) == ["run: eval.jsonl: last line is half-written: ignored"]


def test_unreadable_line_in_the_middle_is_skipped_and_numbered(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(points=5))
    lines = (folder / "train.jsonl").read_bytes().split(b"\n")
    lines[2] = b"\xff\xfe not json"
    (folder / "train.jsonl").write_bytes(b"\n".join(lines))
    loaded = load_runs([tmp_path])
    assert len(loaded.runs[0].train) == 4
    assert notes_of(loaded) == ["run: train.jsonl: line 3 is not readable: ignored"]


def test_repeated_frames_keep_the_later_row(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(points=3, frames=300))
    with (folder / "eval.jsonl").open("a") as file:
        file.write(json.dumps({"frames": 200, "mean_return": 77.0}) + "\n")
    (run,) = load_runs([tmp_path]).runs
    assert run.evaluation_series().frames.tolist() == [100, 200, 300]
    assert run.evaluation_series().values[1] == 77.0


def test_empty_folder_beside_runs_is_said(tmp_path):
    write_run(tmp_path / "run", Synthetic())
    (tmp_path / "run" / "checkpoints").mkdir()  # an empty part of a run is no run
    (tmp_path / "nothing").mkdir()
    assert notes_of(load_runs([tmp_path])) == ["nothing: empty folder: left out"]


def test_path_without_any_run_is_said_if_another_has_one(tmp_path):
    write_run(tmp_path / "good" / "run", Synthetic())
    (tmp_path / "bad").mkdir()
    loaded = load_runs([tmp_path / "good", tmp_path / "bad"])
    assert len(loaded.runs) == 1
    assert "holds no run" in notes_of(loaded)[0]


def test_run_without_records_is_kept_and_said(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic())
    for name in ("train.jsonl", "eval.jsonl", "status.json"):
        (folder / name).unlink()
    loaded = load_runs([tmp_path])
    assert len(loaded.runs) == 1
    assert notes_of(loaded) == [
        "run: no status.json: nobody knows whether it is finished",
        "run: no records yet: in no curve and no score",
    ]


def test_failed_and_unfinished_runs_are_said(tmp_path):
    write_run(tmp_path / "a", Synthetic(state="failed", error="out of memory", frames=1000))
    write_run(tmp_path / "b", Synthetic(state="running", frames=1000, seed=1))
    assert notes_of(load_runs([tmp_path])) == [
        "a: failed at 1,000 frames (out of memory)",
        "b: not finished: 1,000 frames so far",
    ]


def test_damaged_manifest_and_records_without_one_leave_the_run_out(tmp_path):
    write_run(tmp_path / "good", Synthetic())
    broken = write_run(tmp_path / "broken", Synthetic(seed=1))
    (broken / "manifest.json").write_text('{"format": 1,')
    lacking = write_run(tmp_path / "lacking", Synthetic(seed=2))
    (lacking / "manifest.json").write_text('{"format": 1, "env": "x"}')
    orphan = write_run(tmp_path / "orphan", Synthetic(seed=3))
    (orphan / "manifest.json").unlink()
    loaded = load_runs([tmp_path])
    assert [run.name for run in loaded.runs] == ["good"]
    assert sorted(notes_of(loaded)) == [
        "broken: manifest.json is not readable JSON: ignored",
        "lacking: manifest.json lacks replay, label, seed: left out",
        "orphan: records without a manifest.json: left out",
    ]


def test_no_run_at_all_is_an_error_with_the_remedy(tmp_path):
    with pytest.raises(PserError, match="needs at least one run"):
        load_runs([tmp_path])
    with pytest.raises(PserError, match="does not exist"):
        load_runs([tmp_path / "missing"])


def test_one_label_with_different_settings_becomes_two_variants(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / f"a{seed}", Synthetic(seed=seed, settings={"alpha": 0.5}))
        write_run(tmp_path / f"b{seed}", Synthetic(seed=seed, settings={"alpha": 0.7}))
    loaded = load_runs([tmp_path])
    assert loaded.labels == ["PSER_MaxPrio_MAX [alpha=0.5]", "PSER_MaxPrio_MAX [alpha=0.7]"]
    assert "different replay.alpha" in notes_of(loaded)[0]


def test_seed_and_environment_do_not_make_variants(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), replays=("pser",), seeds=3)
    assert load_runs([tmp_path]).labels == ["PSER_MaxPrio_MAX"]


def test_same_run_twice_over_is_said(tmp_path):
    write_run(tmp_path / "a", Synthetic())
    write_run(tmp_path / "b", Synthetic())
    assert notes_of(load_runs([tmp_path])) == ["b: same environment, label and seed as a: both are counted"]


def test_main_label_of_a_strategy_is_the_one_with_most_runs_then_the_papers(tmp_path):
    write_sweep(tmp_path / "sweep", replays=("pser", "per"), seeds=2)
    for seed in (0, 1):
        write_run(tmp_path / f"td{seed}", Synthetic(label="PSER_CurrentTD_MAX", seed=seed))
    assert load_runs([tmp_path]).main_labels == ["PSER_MaxPrio_MAX", "PER_MaxPrio"]
    write_run(tmp_path / "td2", Synthetic(label="PSER_CurrentTD_MAX", seed=2))
    assert load_runs([tmp_path]).main_labels == ["PSER_CurrentTD_MAX", "PER_MaxPrio"]


def test_settings_that_older_runs_did_not_know_are_taken_as_alike_and_it_is_said(tmp_path):
    write_run(tmp_path / "old", Synthetic())
    write_run(tmp_path / "new", Synthetic(seed=1, settings={"signal": "td", "loss": "huber"}))
    loaded = load_runs([tmp_path])
    assert loaded.labels == ["PSER_MaxPrio_MAX"]
    assert notes_of(loaded) == [
        "PSER_MaxPrio_MAX on minatar:breakout: not all runs record replay.loss, replay.signal; taken as alike"
    ]
    write_run(tmp_path / "other", Synthetic(seed=2, settings={"signal": "kl", "loss": "huber"}))
    assert len(load_runs([tmp_path]).labels) == 3
