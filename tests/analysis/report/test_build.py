import json

import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import ReportSettings, build_report
from pser.analysis.report.comparison import normalised_scores
from pser.analysis.report.metrics import METRICS, metric_series
from pser.analysis.report.pictures import interval_panels
from pser.analysis.report.tables import aggregate_table, change_table, pair_table
from pser.errors import PserError

FAST = ReportSettings(resamples=200)


def test_report_has_curves_scores_and_sentences_for_every_game(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=2)
    report = build_report([tmp_path], FAST)
    assert [env.env for env in report.curves] == ["minatar:asterix", "minatar:breakout"]
    for env in report.curves:
        assert [curve.label for curve in env.returns] == ["PSER_MaxPrio_MAX", "PER_MaxPrio", "Uniform"]
        assert set(env.metrics) == {metric.key for metric in METRICS}
        assert all(len(curves) == 3 for curves in env.metrics.values())
    assert report.sentences[0].head.startswith("No difference shown between PSER_MaxPrio_MAX and PER_MaxPrio")
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
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=3)
    profile = build_report([tmp_path], FAST).profile
    for share in profile.shares.values():
        assert np.all(np.diff(share) <= 0)
        assert share[0] == pytest.approx(1.0)
        assert share[-1] == pytest.approx(0.0)


def test_profile_steps_down_at_each_score_and_nowhere_else(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=3)
    report = build_report([tmp_path], FAST)
    scores = [
        value
        for label in report.comparison.labels
        for task in normalised_scores(report.board, label.label, report.comparison.envs, "final")
        for value in task
    ]
    np.testing.assert_allclose(report.profile.thresholds[1:], np.unique(scores))


def test_single_game_has_no_aggregates_no_profile_and_no_change_table(tmp_path):
    write_sweep(tmp_path, seeds=3)
    report = build_report([tmp_path], FAST)
    assert report.comparison.labels == ()
    assert report.profile is None
    assert aggregate_table(report) is None
    assert change_table(report) is None
    assert interval_panels(report) == []
    assert len(pair_table(report).rows) == 3


def test_published_figures_are_laid_beside_training_returns_as_far_as_the_runs_go(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong", "minatar:breakout"), seeds=1, frames=20_000_000)
    atari, minatar = build_report([tmp_path], FAST).curves
    assert [x.name for x in atari.published] == ["Dopamine DQN", "Dopamine Rainbow"]
    assert atari.published[0].frames.tolist() == [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000]
    assert [x.agent for x in minatar.published] == ["uniform", "PER", "ReLo"]
    for env in (atari, minatar):
        assert all(set(x.frames.tolist()) <= set(env.training_frames.tolist()) for x in env.published)
    off = build_report([tmp_path], ReportSettings(resamples=200, published=False))
    assert not any(env.published for env in off.curves)


def test_runs_too_short_for_any_published_figure_have_none(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong",), seeds=1, frames=500_000)
    assert build_report([tmp_path], FAST).curves[0].published == ()


def test_curve_holds_the_line_of_each_seed(tmp_path):
    write_sweep(tmp_path, seeds=3)
    curve = build_report([tmp_path], FAST).curves[0].returns[0]
    assert list(curve.lines) == ["pser-0", "pser-1", "pser-2"]
    np.testing.assert_allclose(np.mean(list(curve.lines.values()), axis=0), curve.mean)


def test_curves_of_five_hundred_runs_hold_a_bounded_number_of_points(tmp_path, monkeypatch):
    monkeypatch.setattr("pser.analysis.report.games.MAX_LINE_NUMBERS", 2 * 18 * 60)
    write_sweep(tmp_path, envs=("gym:A-v0", "gym:B-v0"), seeds=3, points=100)
    report = build_report([tmp_path], FAST)
    assert {len(env.frames) for env in report.curves} == {60}


def test_at_frames_beyond_every_run_is_refused(tmp_path):
    write_sweep(tmp_path, seeds=1)
    with pytest.raises(PserError, match="the longest has 500,000: lower --at-frames"):
        build_report([tmp_path], ReportSettings(at_frames=600_000))


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
    monkeypatch.setattr("pser.analysis.report.games.MAX_NUMBERS", 2 * 3 * len(METRICS) * 4 * 40)
    write_sweep(tmp_path, envs=("gym:A-v0", "gym:B-v0"), seeds=1, points=100)
    report = build_report([tmp_path], FAST)
    assert {len(env.metric_frames) for env in report.curves} == {40}
    assert {len(env.frames) for env in report.curves} == {100}
