"""`pser train`: flags over presets, mistakes in one line, runs repeated and resumed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from docstring_parser import parse_from_object

from pser.cli import main
from pser.cli import train as train_command
from pser.cli.train_flags import given_flags, shorten_evaluation
from pser.errors import PserError
from pser.files import atomic as files
from pser.learner.family import AGENTS
from pser.learner.presets import PRESETS, preset_settings
from pser.learner.settings import GROUPS, STRATEGY_FIELDS
from pser.learner.settings_json import to_json
from pser.records.folder import RunFolder
from pser.run import training
from pser.run.progress import PlainProgress

torch.set_num_threads(1)
SMALL = [
    *(
        "--hidden",
        "8",
        "8",
        "--capacity",
        "200",
        "--warmup-steps",
        "20",
        "--frames",
        "120",
        "--batch-size",
        "8",
    ),
    *(
        "--log-period-frames",
        "40",
        "--eval-period-frames",
        "60",
        "--eval-episodes",
        "2",
        "--eval-num-envs",
        "2",
    ),
    *("--max-episode-steps", "20", "--checkpoint-period-frames", "60", "--tensorboard", "off"),
]


def train(path, *flags):
    return main(["train", "gym:CartPole-v1", "--run-dir", str(path), *SMALL, *flags])


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def manifest(path):
    return json.loads((path / "manifest.json").read_text())


def test_a_run_leaves_its_records(tmp_path, capsys):
    assert train(tmp_path / "run", "--replay", "per", "--seed", "3") == 0
    found = manifest(tmp_path / "run")
    assert (found["format"], found["env"], found["replay"]) == (1, "gym:CartPole-v1", "per")
    assert (found["label"], found["seed"], found["preset"]) == ("PER_MaxPrio", 3, "classic")
    assert found["settings"]["agent"]["hidden"] == [8, 8]
    assert found["versions"]["torch"] == torch.__version__
    lines = rows(tmp_path / "run/train.jsonl")
    assert [line["frames"] for line in lines] == [40, 80, 120]
    assert set(lines[0]) == {
        *("frames", "steps", "updates", "episodes", "return_mean", "return_count", "length_mean", "epsilon"),
        *("loss", "q_mean", "td_abs_mean", "beta", "frames_per_second", "memory"),
    }
    evaluations = rows(tmp_path / "run/eval.jsonl")
    assert [line["frames"] for line in evaluations] == [60, 120]
    assert set(evaluations[0]) == {
        *("frames", "episodes", "mean_return", "median_return", "std_return", "min_return", "max_return"),
        *("mean_length", "best"),
    }
    assert evaluations[0]["best"]
    status = json.loads((tmp_path / "run/status.json").read_text())
    assert status == {"state": "finished", "frames": 120, "error": None}
    printed = capsys.readouterr().out
    assert "evaluation at 60 frames" in printed
    assert "finished: 120 frames" in printed


def test_flags_override_the_preset_and_nothing_else(tmp_path):
    train(tmp_path / "run", "--double-q", "off", "--window", "derived", "--initial", "td", "--eps", "0.01")
    expected = to_json(preset_settings("classic", "gym:CartPole-v1"))
    got = manifest(tmp_path / "run")["settings"]
    changed = {name for group in got for name in got[group] if got[group][name] != expected[group][name]}
    given = {flag[2:].replace("-", "_") for flag in SMALL if flag.startswith("--")} - {"frames", "hidden"}
    assert changed == given | {"budget_frames", "hidden", "double_q", "window", "initial", "priority_eps"}
    assert (got["agent"]["double_q"], got["replay"]["window"]) == (False, "derived")


@pytest.mark.parametrize(
    ("words", "frames"), [((), 500_000), (("5",), 0), (("5", "--eval-frames", "800"), 800)]
)
def test_a_number_of_evaluation_episodes_takes_the_place_of_a_number_of_frames(words, frames):
    arguments = ["--eval-episodes", *words] if words else []
    settings = train_command.parse(["atari:Pong", *arguments])
    given = given_flags(settings, train_command.LEFT_OUT)
    assert preset_settings("paper", "atari:Pong").override(given).evaluation.eval_frames == frames


def test_from_run_repeats_a_run(tmp_path):
    train(tmp_path / "one", "--alpha", "0.3")
    source = str(tmp_path / "one/manifest.json")
    assert main(["train", "--from-run", source, "--run-dir", str(tmp_path / "two")]) == 0
    assert manifest(tmp_path / "two")["settings"] == manifest(tmp_path / "one")["settings"]
    assert (tmp_path / "one/eval.jsonl").read_bytes() == (tmp_path / "two/eval.jsonl").read_bytes()
    assert main(["train", "--from-run", source, "--run-dir", str(tmp_path / "three"), "--seed", "9"]) == 0
    assert manifest(tmp_path / "three")["seed"] == 9
    assert manifest(tmp_path / "three")["settings"]["replay"]["alpha"] == 0.3


def test_a_finished_run_is_left_alone_by_resume(tmp_path, capsys):
    train(tmp_path / "run")
    before = (tmp_path / "run/train.jsonl").read_bytes()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert "is finished" in capsys.readouterr().out
    assert (tmp_path / "run/train.jsonl").read_bytes() == before


def test_a_damaged_checkpoint_is_skipped_with_a_warning(tmp_path, capsys):
    train(tmp_path / "run")
    run = tmp_path / "run"
    before = (run / "eval.jsonl").read_bytes()
    (run / "status.json").write_text(json.dumps({"state": "running", "frames": 120, "error": None}))
    newest = sorted((run / "checkpoints").iterdir())[-1] / "state.pser"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert main(["train", "--resume", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "warning: checkpoint frames-000000000120 is damaged" in printed
    assert "at 60 frames" in printed
    assert (run / "eval.jsonl").read_bytes() == before


def test_when_no_checkpoint_is_whole_each_is_named(tmp_path, capsys):
    train(tmp_path / "run")
    (tmp_path / "run/status.json").unlink()
    for path in (tmp_path / "run/checkpoints").glob("*/memory.pser"):
        path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 2
    printed = capsys.readouterr()
    assert printed.out.count("is damaged and was skipped") == 2
    assert "is whole: start a new run" in printed.err


def error_of(capsys, *arguments):
    assert main(["train", *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["atari:Pongg"], "Pong"),
        (["minatar:chess"], "chess"),
        (["gym:NoSuch-v0"], "NoSuch-v0"),
        (["Pong"], "FAMILY:NAME"),
        (["gym:CartPole-v1", "--window", "-1"], "window"),
        (["gym:CartPole-v1", "--alpha", "1.5"], "alpha"),
        (["gym:CartPole-v1", "--capacity", "10"], "capacity"),
        (["minatar:breakout", "--eval-noop-max", "30"], "noop_max"),
        (["minatar:breakout", "--network", "nature"], "nature network needs"),
        (["gym:CartPole-v1", "--capacity", "100000000000000"], "capacity"),
        (["gym:CartPole-v1", "--learning-rate", "inf"], "finite"),
        (["gym:CartPole-v1", "--device", "cuda"], "no GPU"),
        (
            ["gym:CartPole-v1", "--replay", "uniform", "--eta", "0.5"],
            "for options of others, got --eta (of pser)",
        ),
        (
            ["gym:CartPole-v1", "--replay", "per", "--rho", "0.9", "--omega", "0"],
            "--rho (of pser), --omega (of reaper)",
        ),
        (
            ["gym:CartPole-v1", "--window", "3", "--window-floor", "0.1"],
            "got --window-floor: add --window adaptive",
        ),
        (
            ["gym:CartPole-v1", "--preset", "paper"],
            "the preset paper sets life_loss, eval_noop_max, which gym:CartPole-v1",
        ),
        (["minatar:breakout", "--preset", "der"], "choose another, such as --preset minatar"),
        ([], "which game"),
        (["--resume", "/nonexistent"], "no manifest"),
        (["gym:CartPole-v1", "--resume", "/x", "--alpha", "0.4"], "env, --alpha"),
    ],
)
def test_a_mistake_is_one_clear_line_and_writes_nothing(arguments, words, capsys, tmp_path, monkeypatch):
    if "--device" in arguments and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    assert words in error_of(capsys, *arguments)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_with_another_run_is_refused(tmp_path, capsys):
    train(tmp_path / "run")
    capsys.readouterr()
    before = manifest(tmp_path / "run")
    assert "already holds a run" in error_of(capsys, "gym:CartPole-v1", "--run-dir", tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.tex").write_text("precious")
    assert "not empty" in error_of(capsys, "gym:CartPole-v1", "--run-dir", tmp_path / "other")
    assert manifest(tmp_path / "run") == before


def test_a_folder_of_a_run_killed_before_its_manifest_can_be_used_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.lock").touch()
    (tmp_path / "run/.manifest.json.123.tmp").write_text("{")
    assert train(tmp_path / "run") == 0


def test_the_manifest_has_one_spelling_of_a_game(tmp_path):
    path = tmp_path / "run"
    assert main(["train", "minatar:Space-Invaders", "--run-dir", str(path), *SMALL]) == 0
    assert manifest(path)["env"] == manifest(path)["settings"]["game"]["env"] == "minatar:space_invaders"


def test_an_interrupted_run_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(self, row):
        raise KeyboardInterrupt

    monkeypatch.setattr(PlainProgress, "logged", interrupt)
    assert train(tmp_path / "run") == 130
    assert f"continue with pser train --resume {tmp_path / 'run'}" in capsys.readouterr().out
    assert json.loads((tmp_path / "run/status.json").read_text())["state"] == "stopped"
    monkeypatch.undo()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0


def test_no_room_in_memory_is_one_line(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(training, "Trainer", full)
    assert "lower --capacity" in error_of(capsys, "gym:CartPole-v1", "--run-dir", tmp_path / "run")


def test_a_manifest_of_another_network_is_refused(tmp_path, capsys):
    train(tmp_path / "run")
    changed = manifest(tmp_path / "run")
    changed["settings"]["agent"]["hidden"] = [9, 9]
    (tmp_path / "run/manifest.json").write_text(json.dumps(changed))
    (tmp_path / "run/status.json").unlink()
    capsys.readouterr()
    assert "hidden [9, 9] (the run has [8, 8])" in error_of(capsys, "--resume", tmp_path / "run")


@pytest.mark.parametrize("settings", [5, [], {"game": 3}, {"other": {}}])
def test_a_manifest_without_settings_is_one_line(tmp_path, capsys, settings):
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "settings": settings}))
    error_of(capsys, "--from-run", tmp_path)


def test_a_disk_too_small_is_refused_at_once(tmp_path, capsys, monkeypatch):
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: usage)
    error = error_of(capsys, "gym:CartPole-v1", "--run-dir", tmp_path / "run")
    assert "no disk space" in error
    monkeypatch.undo()
    assert train(tmp_path / "run") == 0  # nothing was left in the folder


def test_a_disk_that_fills_up_is_one_line_and_the_run_goes_on_after(tmp_path):
    limited = (
        "import resource, signal, sys\n"
        "from pser.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    run = tmp_path / "run"
    arguments = ["train", "gym:CartPole-v1", "--run-dir", str(run), *SMALL]
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.startswith("pser: no disk space left")
    assert done.stderr.count("\n") == 1
    assert json.loads((run / "status.json").read_text())["state"] == "failed"
    assert main(["train", "--resume", str(run)]) == 0
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


def test_two_processes_cannot_train_in_one_folder(tmp_path, capsys):
    train(tmp_path / "run")
    (tmp_path / "run/status.json").unlink()
    with RunFolder(tmp_path / "run").locked():
        assert "another process" in error_of(capsys, "--resume", tmp_path / "run")


def test_every_setting_has_a_flag_with_its_help(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for cls in GROUPS.values():
        for name, doc in ((item.arg_name, item.description) for item in parse_from_object(cls).params):
            if name not in ("env", "prioritization"):
                assert "--" + name.replace("_", "-") in text
                assert doc.partition(":")[0].split()[0] in text
    assert "--frames" in text
    for name in ("replay", *STRATEGY_FIELDS):
        assert "--" + name.replace("_", "-") in text


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["minatar:breakout"], {"warmup_steps": "5_000", "life_loss": "off", "hidden": "256 256"}),
        (["--preset", "classic"], {"n_step": "3"}),
        ([], {"warmup_steps": "50_000", "life_loss": "on", "budget_frames": "200_000_000"}),
    ],
)
def test_help_shows_the_values_of_the_preset(words, values, capsys):
    with pytest.raises(SystemExit):
        main(["train", *words, "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "{None}" not in text
    assert "GAME" in text
    for group in GROUPS:
        assert f" {group} options " in text
    for name, value in values.items():
        after = text.partition("--" + name.replace("_", "-") + " ")[2]
        assert after.partition("(preset: ")[2].startswith(f"{value})"), name


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_no_word_of_the_help_is_cut_at_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    words = {word.strip("(),.:;│") for line in lines for word in line.split()}
    assert {*PRESETS, *AGENTS} <= words
    texts = [line.replace("│", " ") for line in lines if line.strip("│ ─")]
    indents = {len(line) - len(line.lstrip()) for line in texts}
    assert len(indents) == 4, indents  # the usage, a title, an option, what an option means


def test_frames_may_be_written_as_1e6():
    given = given_flags(train_command.parse(["gym:CartPole-v1", "--frames", "1e6"]), train_command.LEFT_OUT)
    assert given == {"budget_frames": 1_000_000}


def test_a_folder_with_a_nul_in_its_name_is_one_line(tmp_path, capsys):
    assert "NUL" in error_of(capsys, "gym:CartPole-v1", "--run-dir", f"{tmp_path}/a\0b")
    with pytest.raises(PserError, match="NUL"):
        RunFolder(Path("a\0b"))


def test_a_run_is_extended_by_its_flag(tmp_path, capsys):
    train(tmp_path / "run")
    assert main(["train", "--resume", str(tmp_path / "run"), "--extend", "6e1"]) == 0
    assert rows(tmp_path / "run/train.jsonl")[-1]["frames"] == 180
    assert "finished: 180 frames" in capsys.readouterr().out
    assert "--resume" in error_of(capsys, "gym:CartPole-v1", "--extend", "10")


def test_an_extension_shows_the_frames_it_goes_to(tmp_path, capsys):
    train(tmp_path / "run")
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run"), "--extend", "60"]) == 0
    assert "budget-frames 180" in capsys.readouterr().out


def test_a_run_that_is_all_warm_up_says_so(tmp_path, capsys):
    train(tmp_path / "short", "--warmup-steps", "120")
    assert "all 120 frames are warm-up, which takes 120, so nothing is learned" in capsys.readouterr().out
    train(tmp_path / "run")
    assert "warm-up" not in capsys.readouterr().out


def test_the_settings_are_shown_at_the_start(tmp_path, capsys):
    train(tmp_path / "run", "--alpha", "0.25")
    text = " ".join(capsys.readouterr().out.partition("evaluation at")[0].split())
    for words in ("env gym:CartPole-v1", "alpha 0.25", "budget-frames 120", "hidden 8 8", "tensorboard off"):
        assert words in text


@pytest.mark.parametrize(
    ("flags", "frames"),
    [
        ({"budget_frames": 3_000}, 1_500),
        ({"budget_frames": 3_000, "eval_frames": 500_000}, 500_000),
        ({"budget_frames": 1}, 1),
        ({"budget_frames": 1_000_000}, 500_000),
        ({}, 500_000),
    ],
)
def test_a_short_run_does_not_end_in_a_long_evaluation_unasked(flags, frames):
    settings = preset_settings("paper", "atari:Pong").override(flags)
    assert shorten_evaluation(settings, flags).evaluation.eval_frames == frames


@pytest.mark.parametrize(
    ("flags", "episodes"),
    [
        ({"budget_frames": 3_000}, 1),
        ({"budget_frames": 50_000}, 8),
        ({"budget_frames": 100_000}, 16),
        ({"budget_frames": 3_000, "eval_episodes": 16}, 16),
        ({}, 16),
    ],
)
def test_of_a_short_run_fewer_episodes_are_evaluated_where_they_are_counted(flags, episodes):
    evaluation = shorten_evaluation(preset_settings("der", "atari:Pong").override(flags), flags).evaluation
    assert (evaluation.eval_frames, evaluation.eval_episodes) == (0, episodes)


def test_help_needs_no_torch():
    program = (
        "import sys; from pser.cli import main\ntry: main(['train', '--help'])\nexcept SystemExit: pass\n"
    )
    program += "print('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == "False\n"
