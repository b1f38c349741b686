import pytest

from analysis.synthetic import write_sweep
from pser.cli import main

pytest.importorskip("tyro", reason="the commands need the cli extra")
pytest.importorskip("jinja2", reason="the page needs the report extra")


@pytest.fixture
def runs(tmp_path):
    return write_sweep(tmp_path / "runs", seeds=2)


def test_report_writes_the_page_and_names_it(runs, tmp_path, capsys):
    out = tmp_path / "new" / "report.html"
    assert main(["report", str(runs), "--out", str(out), "--resamples", "200", "--title", "Mine"]) == 0
    printed = capsys.readouterr().out
    assert "No difference shown between PSER_MaxPrio_MAX and PER_MaxPrio" in printed
    assert printed.splitlines()[-1] == f"written: {out} (open it in a browser)"
    assert "<h1>Mine</h1>" in out.read_text()
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_report_takes_several_folders(runs, tmp_path, capsys):
    folders = [str(path) for path in sorted((runs / "minatar-breakout").iterdir())[:4]]
    assert main(["report", *folders, "--out", str(tmp_path / "report.html"), "--resamples", "200"]) == 0
    assert "4 runs" in capsys.readouterr().out


def test_report_as_markdown_links_its_figures(runs, tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need the plot extra")
    out = tmp_path / "study.md"
    assert main(["report", str(runs), "--out", str(out), "--resamples", "200"]) == 0
    assert "](study_figures/learning_curves.png)" in out.read_text()
    assert (tmp_path / "study_figures" / "learning_curves.png").exists()


@pytest.mark.parametrize(("name", "format"), [("report.md", "html"), ("report.HTML", "md")])
def test_a_format_that_the_file_does_not_end_in_is_refused(runs, tmp_path, capsys, name, format):
    assert main(["report", str(runs), "--out", str(tmp_path / name), "--format", format]) == 2
    assert f"got --format {format}: rename it" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_report_of_nothing_is_one_line_and_writes_nothing(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "empty"), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: a report needs at least one run; found none in")
    assert error.count("\n") == 1
    assert not out.exists()


def test_report_into_a_folder_says_which_file_to_name(runs, tmp_path, capsys):
    assert main(["report", str(runs), "--out", str(tmp_path)]) == 2
    assert "--out names a file" in capsys.readouterr().err


def test_report_scores_at_the_frames_asked_for(runs, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(runs), "--out", str(out), "--resamples", "200", "--at-frames", "250000"]) == 0
    assert "scores count the first 250,000 frames" in capsys.readouterr().out
    assert main(["report", str(runs), "--out", str(out), "--at-frames", "900000"]) == 2
    assert "the longest has 500,000: lower --at-frames" in capsys.readouterr().err
    assert main(["report", str(runs), "--out", str(out), "--at-frames", "1000"]) == 2
    assert "up to 1,000 frames; the first come at 25,000: raise --at-frames" in capsys.readouterr().err


def test_a_negative_seed_is_one_line(runs, capsys):
    assert main(["report", str(runs), "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "pser: seed is not negative; got -1: use 0 or more\n"
