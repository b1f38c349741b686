import json

import pytest

from pser.cli import main

pytest.importorskip("tyro", reason="the commands need the cli extra")
pytest.importorskip("matplotlib", reason="the figures need the plot extra")


def test_paper_writes_its_files_and_prints_the_verdicts(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["paper", "--out", str(tmp_path / "new" / "folder"), "--resamples", "500"]) == 0
    out = capsys.readouterr().out
    for value in ("108.5%", "831.9%", "87.5%", "606.9%", "40 / 3 / 17", "does not hold"):
        assert value in out
    folder = tmp_path / "new" / "folder"
    names = {path.name for path in folder.iterdir()}
    figures = {
        f"{name}.{kind}" for name in ("relative_performance", "percent_change") for kind in ("png", "svg")
    }
    assert names == {"paper.json", "paper.md"} | figures
    assert json.loads((folder / "paper.json").read_text())["all_games"] == {
        "wins": 40,
        "ties": 3,
        "losses": 17,
    }
    assert (folder / "percent_change.png").read_bytes().startswith(b"\x89PNG")


def test_paper_refuses_bad_settings_with_the_remedy_and_writes_nothing(tmp_path, capsys):
    try:
        code = main(["paper", "--out", str(tmp_path / "out"), "--resamples", "0"])
    except SystemExit as stop:  # the argument parser itself may end the command
        code = stop.code
    assert code == 2
    assert "resamples is at least 1; got 0: use 2000 or more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("columns", [80, 99, 100, 120])
def test_paper_never_cuts_a_number(tmp_path, capsys, monkeypatch, columns):
    from pser.analysis.paper.recompute import analyse

    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["paper", "--out", str(tmp_path), "--resamples", "500"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    for aggregate in analyse(resamples=500).aggregates.values():
        for estimate, form in (
            (aggregate.pser, ".1f"),
            (aggregate.per, ".1f"),
            (aggregate.difference, "+.1f"),
        ):
            assert f"{estimate.value:{form}}%" in out
            assert f"[{estimate.low:{form}}, {estimate.high:{form}}]" in out
