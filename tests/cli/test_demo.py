"""The whole of `pser demo` with a tiny budget, and the schedule it derives."""

import json

import pytest

from pser.cli import main
from pser.cli.demo import GAME, Settings, quick_learner
from pser.learner.presets import preset_settings


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return out, main(["demo", "--frames", "1000", "--seeds", "1", "--jobs", "2", "--out", str(out)])


def test_demo_ends_well_and_names_the_pages_to_open_last(demo, capfd):
    out, code = demo
    assert code == 0
    # Again: everything is finished, so only the pages are made anew.
    assert main(["demo", "--frames", "1000", "--seeds", "1", "--jobs", "2", "--out", str(out)]) == 0
    printed = capfd.readouterr().out
    for line, name in zip(printed.splitlines()[-2:], ("report.html", "inspect.html"), strict=True):
        assert line.endswith(str((out / name).resolve()))
    assert printed.count("was finished before") == 3
    assert [line[:10] for line in printed.splitlines() if line.startswith("== ")][:4] == [
        f"== {part} of 4:" for part in (1, 2, 3, 4)
    ]


def test_demo_leaves_the_study_three_trained_agents_and_the_report(demo):
    out, _ = demo
    assert (out / "cliffwalk" / "cliffwalk.md").exists()
    assert (out / "cliffwalk" / "curves.png").exists()
    manifests = sorted(out.glob("breakout-1000/**/manifest.json"))
    runs = [json.loads(path.read_text()) for path in manifests]
    assert {run["replay"] for run in runs} == {"uniform", "per", "pser"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(run["label"] in page for run in runs)
    page = (out / "inspect.html").read_text(encoding="utf-8")
    (watched,) = [run["label"] for run in runs if run["replay"] == "pser"]
    assert f"minatar:breakout, {watched}, seed 0" in page
    assert '"frames":1000' in page


def test_runs_of_another_budget_are_not_continued(demo):
    out, _ = demo
    assert not (out / f"breakout-{Settings().frames}").exists()


@pytest.mark.parametrize("frames", [1_000, 2_000, Settings().frames])
def test_schedule_fits_the_budget_and_is_made_of_settings_of_the_trainer(frames):
    settings = preset_settings("minatar", GAME).override(quick_learner(frames))
    assert settings.run.budget_frames == frames
    assert settings.agent.warmup_steps + settings.exploration.epsilon_decay_steps < frames
    assert frames / settings.evaluation.eval_period_frames >= 6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--frames", "10"], "frames is at least 1000; got 10: raise it"),
        (["--seeds", "0"], "seeds is at least 1; got 0: raise it"),
        (["--jobs", "-1"], "0 for one per core; got -1"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(flags, message, tmp_path, capsys):
    assert main(["demo", *flags, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
