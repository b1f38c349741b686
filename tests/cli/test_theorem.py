import json
import xml.etree.ElementTree as ET

import pytest

from pser.cli import main

pytest.importorskip("tyro", reason="the commands need the cli extra")
pytest.importorskip("matplotlib", reason="the figures need the plot extra")

SMALL = ["--states", "2..3", "--rho", "0.4", "0.8", "--repetitions", "300"]
FIELDS = {"process", "states", "rho", "eta", "mean", "stderr", "bound_main", "bound_appendix", "exact"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    out = tmp_path_factory.mktemp("theorem")
    assert main(["theorem", *SMALL, "--out", str(out), "--jobs", "1"]) == 0
    return out


def test_json_has_every_process_with_both_bounds_and_the_exact_value(measured):
    content = json.loads((measured / "theorem.json").read_text())
    rows = content["rows"]
    assert len(rows) == 2 * (4 + 2 * 13)
    assert {row["process"] for row in rows} == set(content["settings"]["processes"])
    for row in rows:
        assert row.keys() >= FIELDS
        if row["exact"] is not None:
            assert abs(row["mean"] - row["exact"]) <= 5 * row["stderr"] + 1e-9
    two = next(r for r in rows if (r["process"], r["states"], r["rho"]) == ("pser_proof", 2, 0.4))
    assert two["bound_main"] == pytest.approx(2.4)
    assert two["bound_appendix"] == pytest.approx(2.8)
    assert two["exact"] == pytest.approx(2 + 3 * 0.4 / 1.4)


@pytest.mark.parametrize("name", ["theorem_proof", "theorem_algorithm", "theorem_paper", "theorem_maxprio"])
def test_figures_are_written_as_png_and_svg(measured, name):
    assert (measured / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(measured / f"{name}.svg").getroot().tag.endswith("svg")


def test_results_do_not_depend_on_jobs_and_finished_cells_are_kept(measured, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pser.analysis.theorem.figures.draw_theorem_figures", lambda rows, folder: None)
    words = ["theorem", *SMALL, "--out", str(tmp_path), "--jobs", "2"]
    assert main(words) == 0
    assert main(words) == 0
    assert "60 of 60 runs were finished before" in capsys.readouterr().out
    for name in ("theorem.json", "theorem.md"):
        assert (tmp_path / name).read_bytes() == (measured / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--states", "0"], "at least 1 state"),
        (["--states", "17"], "at most 16"),
        (["--rho", "1"], "rho"),
        (["--rho", "0"], "rho"),
        (["--repetitions", "1"], "repetitions"),
        (["--seed", "-1"], "seed"),
        (["--out", "/proc/cannot/be"], "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, message, tmp_path, capsys):
    assert main(["theorem", "--out", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: ")
    assert error.count("\n") == 1
    assert message in error
