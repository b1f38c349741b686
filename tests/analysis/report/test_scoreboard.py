import json

import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.loading import load_runs
from pser.analysis.report.scoreboard import Scale, build_scoreboard


def board_of(path, window=0.0):
    return build_scoreboard(load_runs([path]), window)


def evaluations(folder):
    return [json.loads(line) for line in (folder / "eval.jsonl").read_text().splitlines()]


def test_final_is_the_mean_of_the_last_window_and_best_the_highest(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(points=10, frames=1000))
    values = [row["mean_return"] for row in evaluations(folder)]
    (score,) = board_of(tmp_path, window=300).boards[0].scores
    assert score.final == pytest.approx(np.mean(values[-3:]))
    assert score.best == pytest.approx(max(values))
    assert score.get("best") == score.best


def test_fresh_evaluation_of_the_best_snapshot_is_preferred(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(final=True))
    fresh = json.loads((folder / "final.json").read_text())["mean_return"]
    (score,) = board_of(tmp_path).boards[0].scores
    assert score.get("best") == pytest.approx(fresh)
    assert score.reevaluated_episodes == 20


def test_fresh_evaluation_of_the_last_snapshot_is_not_taken_for_the_best(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(final=True))
    document = json.loads((folder / "final.json").read_text())
    (folder / "final.json").write_text(json.dumps({**document, "snapshot": "last"}))
    (score,) = board_of(tmp_path).boards[0].scores
    assert score.reevaluated is None


def test_fresh_evaluation_of_a_snapshot_that_was_replaced_since_is_not_taken(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(final=True))
    document = json.loads((folder / "final.json").read_text())
    earlier = document["snapshot_frames"] - 1
    (folder / "final.json").write_text(json.dumps({**document, "snapshot_frames": earlier}))
    (score,) = board_of(tmp_path).boards[0].scores
    assert score.reevaluated is None


def test_longer_runs_are_cut_to_the_shortest_finished_one_and_it_is_said(tmp_path):
    write_run(tmp_path / "short", Synthetic(frames=300_000, points=10))
    write_run(tmp_path / "long", Synthetic(frames=600_000, points=20, seed=1, final=True))
    found = board_of(tmp_path)
    board = found.boards[0]
    assert board.budget_frames == 300_000
    long = next(score for score in board.scores if score.run.name == "long")
    cut = [row["mean_return"] for row in evaluations(tmp_path / "long") if row["frames"] <= 300_000]
    assert long.final == pytest.approx(cut[-1])
    assert long.best == pytest.approx(max(cut))
    assert long.reevaluated is None  # its snapshot may come from after the budget
    assert [str(note) for note in found.notes] == [
        "minatar:breakout: runs differ in length; scores count the first 300,000 frames of each "
        "(--at-frames chooses another number)"
    ]


def test_run_that_stopped_early_has_no_score_and_it_is_said(tmp_path):
    write_sweep(tmp_path, replays=("per",), seeds=2)
    write_run(tmp_path / "dead", Synthetic(frames=50_000, state="failed", replay="per", seed=9))
    found = board_of(tmp_path)
    assert found.boards[0].budget_frames == 500_000
    assert {score.run.seed for score in found.boards[0].scores} == {0, 1}
    said = "dead: stops at 50,000 of 500,000 frames: in the curves, in no score (--at-frames 50000 would compare there)"
    assert said in map(str, found.notes)


@pytest.mark.parametrize("label", ["PER_MaxPrio", "PER_CurrentTD"])
def test_stray_short_run_does_not_cut_the_scores_of_all(tmp_path, label):
    write_sweep(tmp_path, replays=("pser", "per"), seeds=3)
    write_run(tmp_path / "stray", Synthetic(frames=20_000, replay="per", label=label, seed=9))
    found = board_of(tmp_path)
    assert found.boards[0].budget_frames == 500_000
    assert len(found.boards[0].scores) == 6
    assert any("stray: stops at 20,000 of 500,000 frames" in str(note) for note in found.notes)
    assert any("--at-frames 20000 would compare there" in str(note) for note in found.notes)


def test_label_that_was_run_shorter_as_a_whole_is_compared_at_its_length(tmp_path):
    write_sweep(tmp_path / "long", replays=("pser",), seeds=6)
    write_sweep(tmp_path / "short", replays=("per",), seeds=3, frames=300_000)
    found = board_of(tmp_path)
    assert found.boards[0].budget_frames == 300_000
    assert len(found.boards[0].scores) == 9


def test_frames_asked_for_are_those_compared_at(tmp_path):
    write_sweep(tmp_path, replays=("per",), seeds=2)
    write_run(tmp_path / "short", Synthetic(frames=100_000, replay="per", seed=9, points=4))
    found = build_scoreboard(load_runs([tmp_path]), 0.0, 100_000)
    assert found.boards[0].budget_frames == 100_000
    assert len(found.boards[0].scores) == 3
    assert build_scoreboard(load_runs([tmp_path]), 0.0, 700_000).boards == ()


def test_a_few_frames_more_or_less_count_as_equal_length(tmp_path):
    write_run(tmp_path / "a", Synthetic(frames=500_000))
    write_run(tmp_path / "b", Synthetic(frames=500_256, seed=1))
    found = board_of(tmp_path)
    assert len(found.boards[0].scores) == 2
    assert found.notes == ()


def test_training_returns_stand_in_only_if_no_run_was_evaluated(tmp_path):
    write_run(tmp_path / "none" / "a", Synthetic(evaluations=False))
    found = board_of(tmp_path / "none")
    assert found.boards[0].source == "training"
    assert "training returns" in str(found.notes[0])
    write_run(tmp_path / "mixed" / "a", Synthetic(evaluations=False))
    write_run(tmp_path / "mixed" / "b", Synthetic(seed=1))
    mixed = board_of(tmp_path / "mixed")
    assert mixed.boards[0].source == "evaluation"
    assert [score.run.name for score in mixed.boards[0].scores] == ["b"]
    assert str(mixed.notes[0]) == "a: has no evaluation: in no curve and no score"


def test_game_without_any_return_is_left_out_and_said(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(evaluations=False))
    (folder / "train.jsonl").write_text("")
    found = board_of(tmp_path)
    assert found.boards == ()
    assert str(found.notes[0]) == "minatar:breakout: no returns recorded, so no score"


def test_atari_is_pooled_human_normalised_and_a_mixture_min_max(tmp_path):
    write_sweep(tmp_path / "a", envs=("atari:Pong",), seeds=1)
    found = board_of(tmp_path / "a")
    assert found.scale_kind() == "human"
    assert found.boards[0].human == Scale(kind="human", low=-20.7, high=14.6)
    write_sweep(tmp_path / "b", envs=("minatar:breakout",), seeds=1)
    mixture = board_of(tmp_path)
    assert mixture.scale_kind() == "min-max"
    assert len(mixture.pooled()) == 2


def test_atari_games_without_a_human_score_are_not_pooled(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong", "atari:AirRaid"), seeds=1)
    found = board_of(tmp_path)
    assert found.scale_kind() == "human"
    assert [board.env for board in found.pooled()] == ["atari:Pong"]


def test_min_max_scale_spans_what_any_run_reached(tmp_path):
    write_sweep(tmp_path, seeds=2)
    board = board_of(tmp_path).boards[0]
    every = [row["mean_return"] for path in tmp_path.rglob("eval.jsonl") for row in evaluations(path.parent)]
    assert board.min_max.low == pytest.approx(min(every))
    assert board.min_max.high == pytest.approx(max(every))
    np.testing.assert_allclose(board.min_max.apply(np.array([min(every), max(every)])), [0.0, 1.0])
