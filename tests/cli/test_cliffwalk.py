import csv
import json
import xml.etree.ElementTree as ET

import pytest

from pser.cli import main

pytest.importorskip("tyro", reason="the commands need the cli extra")
pytest.importorskip("matplotlib", reason="the figures need the plot extra")

SMALL = ["--states", "3..4", "--seeds", "2", "--rho", "0.4", "--eta", "0", "0.7", "--add-rho", "0.4"]
FIGURES = ("curves", "curves_all", "growth", "ratios")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One small study with everything written."""
    out = tmp_path_factory.mktemp("study")
    assert main(["cliffwalk", *SMALL, "--out", str(out), "--jobs", "1"]) == 0
    return out


@pytest.fixture
def without_figures(monkeypatch):
    monkeypatch.setattr("pser.analysis.cliffwalk.figures.draw_cliffwalk_figures", lambda rows, folder: None)


def rows_of(folder):
    return json.loads((folder / "cliffwalk.json").read_text())["rows"]


def test_json_has_one_row_per_run_with_the_settings(study):
    content = json.loads((study / "cliffwalk.json").read_text())
    assert content["settings"]["alpha"] == 0.5
    assert content["settings"]["states"] == [3, 4]
    rows = content["rows"]
    # uniform, oracle, PER, 2 PSER MAX, 2 PSER ADD, PER with η, sweeping, backward
    assert len(rows) == 10 * 3 * 2 * 2
    assert {row["agent"] for row in rows} == {"uniform", "oracle", "per", "pser", "sweeping", "backward"}
    assert {row["init"] for row in rows} == {"max", "eps", "current_td"}
    for row in rows:
        assert {"agent", "init", "states", "rho", "eta", "decay", "seed", "crossings"} <= row.keys()
        assert 0 < row["crossings"]["1e-3"] <= row["crossings"]["1e-5"] == row["iterations"]
        assert (row["rho"] is None) == (row["agent"] != "pser")


def test_agents_without_priorities_stand_under_every_initialisation(study):
    crossings = {
        r["init"]: r["crossings"] for r in rows_of(study) if (r["agent"], r["states"]) == ("uniform", 4)
    }
    assert len(crossings) == 3
    assert crossings["max"] == crossings["eps"] == crossings["current_td"]


def test_csv_has_the_curves_on_the_grid(study):
    with open(study / "cliffwalk.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert set(lines[0]) == {"agent", "init", "states", "rho", "eta", "decay", "seed", "iteration", "mse"}
    assert all(int(line["iteration"]) % 100 == 0 for line in lines)
    starts = [float(line["mse"]) for line in lines if line["iteration"] == "0" and line["states"] == "3"]
    assert starts == pytest.approx([starts[0]] * len(starts))
    assert {line["init"] for line in lines if line["agent"] == "uniform"} == {"any"}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_written_as_png_and_svg(study, name):
    assert (study / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(study / f"{name}.svg").getroot().tag.endswith("svg")


def test_tables_compare_pser_with_per(study):
    assert "PSER ρ=0.4 η=0.7 / PER" in (study / "cliffwalk.md").read_text()


def test_results_do_not_depend_on_jobs(study, tmp_path, without_figures):
    assert main(["cliffwalk", *SMALL, "--out", str(tmp_path), "--jobs", "2"]) == 0
    for name in ("cliffwalk.json", "cliffwalk.csv", "cliffwalk.md"):
        assert (tmp_path / name).read_bytes() == (study / name).read_bytes()


def test_an_interrupted_study_goes_on_where_it_stopped(study, tmp_path, without_figures, monkeypatch, capsys):
    lines = (study / "cliffwalk.runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cliffwalk.runs.jsonl").write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    run_again = []
    from pser.cli import cliffwalk

    whole = cliffwalk.run_task
    monkeypatch.setattr(cliffwalk, "run_task", lambda task: run_again.append(task) or whole(task))
    assert main(["cliffwalk", *SMALL, "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert len(run_again) == 3
    assert f"{len(lines) - 4} of {len(lines) - 1} runs were finished before" in capsys.readouterr().out
    assert (tmp_path / "cliffwalk.json").read_bytes() == (study / "cliffwalk.json").read_bytes()


def test_more_seeds_can_be_added_later(study, tmp_path, without_figures):
    (tmp_path / "cliffwalk.runs.jsonl").write_bytes((study / "cliffwalk.runs.jsonl").read_bytes())
    more = [word if word != "2" else "3" for word in SMALL]
    assert main(["cliffwalk", *more, "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert [row for row in rows_of(tmp_path) if row["seed"] < 2] == rows_of(study)


def test_results_of_other_settings_are_not_mixed(study, tmp_path, capsys):
    (tmp_path / "cliffwalk.runs.jsonl").write_bytes((study / "cliffwalk.runs.jsonl").read_bytes())
    assert main(["cliffwalk", *SMALL, "--out", str(tmp_path), "--curve-tolerance", "0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "curve_tolerance = 0.02, not 0" in error


def test_a_damaged_file_of_finished_runs_is_refused(tmp_path, capsys):
    (tmp_path / "cliffwalk.runs.jsonl").write_text("not json\n")
    assert main(["cliffwalk", *SMALL, "--out", str(tmp_path)]) == 2
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--states", "0"], "at least 1 state"),
        (["--states", "-3"], "at least 1 state"),
        (["--states", "5..2"], "at least 1 state"),
        (["--states", "many"], "ranges like 2..12"),
        (["--states", "21"], "at most 20"),
        (["--rho", "1.0"], "rho"),
        (["--rho", "-0.1"], "rho"),
        (["--eta", "1.5"], "eta"),
        (["--seeds", "0"], "seeds"),
        (["--jobs", "-1"], "jobs"),
        (["--curve-tolerance", "1"], "curve_tolerance"),
        (["--out", "/proc/cannot/be"], "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, message, tmp_path, capsys):
    assert main(["cliffwalk", "--out", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["cliffwalk", "--out", str(tmp_path / "taken")]) == 2
    assert "cannot be written" in capsys.readouterr().err
