import json

import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import METRICS, ReportSettings, build_report, metric_series

FAST = ReportSettings(resamples=200)


def test_report_has_curves_scores_and_sentences_for_every_game(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=2)
    report = build_report([tmp_path], FAST)
    assert [env.env for env in report.curves] == ["minatar:asterix", "minatar:breakout"]
    for env in report.curves:
        assert [curve.label for curve in env.returns] == ["PSER_MaxPrio_MAX", "PER_MaxPrio", "Uniform"]
        assert set(env.metrics) == {metric.key for metric in METRICS}
        assert all(len(curves) == 3 for curves in env.metrics.values())
    assert report.sentences[0].head.startswith("PSER_MaxPrio_MAX is ahead of PER_MaxPrio")
    assert report.notes == ()


def test_curves_are_smoothed_over_the_papers_share_unless_told(tmp_path):
    write_sweep(tmp_path, seeds=1, points=100)
    smooth = build_report([tmp_path], FAST)
    raw = build_report([tmp_path], ReportSettings(resamples=200, smooth_frames=0))
    assert smooth.window_frames == 25_000
    assert raw.window_frames == 0
    wiggle = [np.abs(np.diff(report.curves[0].returns[0].mean)).mean() for report in (smooth, raw)]
    assert wiggle[0] < wiggle[1]


def test_effective_share_is_the_effective_sample_size_over_the_size(tmp_path):
    write_run(tmp_path / "run", Synthetic(replay="uniform"))
    report = build_report([tmp_path], FAST)
    np.testing.assert_allclose(metric_series(report.runs.runs[0], "effective_share").values, 1.0)


def test_effective_share_is_missing_if_its_parts_are(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic())
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    for row in rows[:3]:
        del row["memory"]["size"]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = build_report([tmp_path], FAST)
    assert len(metric_series(report.runs.runs[0], "effective_share")) == 0


def test_profile_falls_from_1_to_0(tmp_path):
    write_sweep(tmp_path, seeds=3)
    profile = build_report([tmp_path], FAST).profile
    for share in profile.shares.values():
        assert np.all(np.diff(share) <= 0)
        assert share[0] == pytest.approx(1.0)
        assert share[-1] == pytest.approx(0.0)


def test_dopamine_curves_are_laid_beside_atari_runs_on_request(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong", "minatar:breakout"), seeds=1, frames=20_000_000)
    assert not any(env.published for env in build_report([tmp_path], FAST).curves)
    report = build_report([tmp_path], ReportSettings(resamples=200, dopamine=True))
    atari, minatar = report.curves
    assert [curve.agent for curve in atari.published] == ["DQN", "Rainbow"]
    assert minatar.published == ()
    assert any("Dopamine" in str(note) for note in report.notes)


def test_everything_forgiven_is_said_in_the_notes(tmp_path):
    folder = write_run(tmp_path / "a", Synthetic())
    with (folder / "eval.jsonl").open("a") as file:
        file.write('{"frames": 51')
    write_run(tmp_path / "b", Synthetic(replay="per", frames=300_000))
    write_run(tmp_path / "c", Synthetic(replay="per", frames=100_000, seed=1, state="failed", error="killed"))
    (tmp_path / "empty").mkdir()
    notes = "\n".join(map(str, build_report([tmp_path], FAST).notes))
    for said in (
        "empty: empty folder",
        "a: eval.jsonl: last line is half-written",
        "c: failed at 100,000 frames (killed)",
        "c: stops at 100,000 of 300,000 frames",
        "runs differ in length; scores count the first 300,000 frames",
        "a single seed gives a game's score no confidence",
        "where seeds end early the curve goes on with the others: PER_MaxPrio",
    ):
        assert said in notes


def test_label_that_misses_a_game_is_said_to_be_left_out_of_the_aggregates(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), replays=("pser", "per"), seeds=2)
    write_run(tmp_path / "add", Synthetic(label="PSER_MaxPrio_ADD"))
    notes = list(map(str, build_report([tmp_path], FAST).notes))
    assert "not on every game of the aggregates, so left out of them: PSER_MaxPrio_ADD" in notes


def test_metric_curves_are_thinned_when_many_games_share_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr("pser.analysis.report.build.MAX_NUMBERS", 2 * 3 * len(METRICS) * 4 * 40)
    write_sweep(tmp_path, envs=("gym:A-v0", "gym:B-v0"), seeds=1, points=100)
    report = build_report([tmp_path], FAST)
    assert {len(env.metric_frames) for env in report.curves} == {40}
    assert {len(env.frames) for env in report.curves} == {100}
