"""`pser evaluate`: the final score of a run."""

import json

import pytest
import torch

from pser.cli import main
from pser.files.container import read_container, write_container

torch.set_num_threads(1)


@pytest.mark.parametrize("snapshot", ["best", "last"])
def test_the_score_is_printed_and_written(run, capsys, snapshot):
    assert main(["evaluate", str(run), "--episodes", "5", "--num-envs", "3", "--snapshot", snapshot]) == 0
    final = json.loads((run / "final.json").read_text())
    assert (final["episodes"], len(final["returns"]), final["snapshot"]) == (5, 5, snapshot)
    assert final["mean_return"] == pytest.approx(sum(final["returns"]) / 5)
    assert f"mean return {final['mean_return']:.2f}" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_score(run):
    scores = []
    for seed in ("1", "1", "2"):
        main(["evaluate", str(run), "--episodes", "6", "--epsilon", "0.5", "--seed", seed])
        scores.append((run / "final.json").read_text())
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]


def test_a_score_of_more_episodes_is_replaced_only_if_named(run, tmp_path, capsys):
    assert main(["evaluate", str(run), "--episodes", "8"]) == 0
    before = (run / "final.json").read_bytes()
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "1", "--epsilon", "1", "--snapshot", "last"]) == 2
    captured = capsys.readouterr()
    assert "holds a score over 8 episodes, got --episodes 1: play as many" in captured.err
    assert captured.out == ""
    assert main(["evaluate", str(run), "--episodes", "1", "--out", str(tmp_path / "quick.json")]) == 0
    assert json.loads((tmp_path / "quick.json").read_text())["episodes"] == 1
    assert (run / "final.json").read_bytes() == before
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "1", "--out", str(run / "final.json")]) == 0
    mean = json.loads(before)["mean_return"]
    said = f"written: {run / 'final.json'}, in place of {mean:.2f} over 8 episodes of the best snapshot"
    assert capsys.readouterr().out.splitlines()[-1] == said
    assert json.loads((run / "final.json").read_text())["episodes"] == 1


@pytest.mark.parametrize("place", ["missing/score.json", ""])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_played(
    run, tmp_path, capsys, monkeypatch, place
):
    monkeypatch.setattr("pser.learner.evaluation.evaluate", None)
    assert main(["evaluate", str(run), "--out", str(tmp_path / place)]) == 2
    assert capsys.readouterr().err.startswith("pser: ")


def test_the_score_is_printed_even_if_it_cannot_be_written_after_all(run, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pser.files.atomic.write_text", full)
    assert main(["evaluate", str(run), "--episodes", "1", "--out", str(tmp_path / "score.json")]) == 2
    captured = capsys.readouterr()
    assert "mean return" in captured.out
    assert "No space left" in captured.err


def test_mistakes_are_one_line(run, tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "no manifest" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--episodes", "0"]) == 2
    assert main(["evaluate", str(run), "--seed", "-1"]) == 2
    assert main(["evaluate", str(run), "--epsilon", "nan"]) == 2
    assert main(["evaluate", str(run / "manifest.json")]) == 2
    assert "episodes must be at least 1" in capsys.readouterr().err


def test_a_snapshot_of_another_network_is_refused(run, capsys):
    path = run / "snapshots/last.pser"
    before = path.read_bytes()
    content = read_container(path)
    write_container(path, content | {"weights": content["weights"][:-1]})
    assert main(["evaluate", str(run), "--snapshot", "last"]) == 2
    assert "must fit the network" in capsys.readouterr().err
    path.write_bytes(before)
