"""A manifest from elsewhere imports no module unless it is trusted."""

import json
import sys

import pytest

from pser.cli import main

CODE = """
import pathlib
pathlib.Path("imported").touch()
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
if "Elsewhere-v0" not in gymnasium.registry:
    gymnasium.register("Elsewhere-v0", entry_point=CartPoleEnv, max_episode_steps=20)
"""
SMALL = [
    *("--hidden", "8", "--capacity", "200", "--warmup-steps", "20", "--frames", "60", "--batch-size", "8"),
    *("--eval-period-frames", "30", "--eval-episodes", "1", "--tensorboard", "off"),
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run of a game that a module of its own registers."""
    (tmp_path / "elsewhere.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    command = ["train", "gym:elsewhere:Elsewhere-v0", "--run-dir", "run", *SMALL]
    assert main(command) == 0  # the command line is trusted
    (tmp_path / "imported").unlink()
    (tmp_path / "run/status.json").unlink()
    del sys.modules["elsewhere"]
    yield tmp_path / "run"
    sys.modules.pop("elsewhere", None)


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--resume", "run"],
        ["train", "--from-run", "run", "--run-dir", "again"],
        ["evaluate", "run", "--episodes", "1"],
        ["watch", "run", "--out", "video.gif", "--max-steps", "3"],
    ],
)
def test_a_module_named_by_a_manifest_is_imported_only_if_trusted(run, command, capsys):
    capsys.readouterr()
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "run/manifest.json names elsewhere: add --trust-imports" in error
    assert error.count("\n") == 1
    assert not (run.parent / "imported").exists()
    if command[0] != "watch":
        assert main([*command, "--trust-imports"]) == 0
        assert (run.parent / "imported").exists()


def test_a_network_named_by_a_manifest_is_imported_only_if_trusted(run, capsys):
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["settings"]["game"]["env"] = "gym:CartPole-v1"
    manifest["settings"]["agent"]["network"] = "elsewhere:Network"
    (run / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert main(["train", "--resume", "run"]) == 2
    assert "elsewhere" in capsys.readouterr().err
    assert not (run.parent / "imported").exists()
