"""A run killed with SIGKILL at random moments ends as one never interrupted: weights, memory, records."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pser.files.container import read_container
from pser.learner.presets import default_preset, preset_settings
from pser.learner.settings_json import to_json
from pser.records.checkpoint import checkpoint_paths
from pser.run.progress import Quiet
from pser.run.training import start_run

torch.set_num_threads(1)
SMALL = {
    "hidden": (16, 16),
    "batch_size": 8,
    "capacity": 500,
    "warmup_steps": 50,
    "budget_frames": 700,
    "log_period_frames": 45,
    "eval_period_frames": 300,
    "eval_frames": 0,
    "eval_episodes": 3,
    "eval_num_envs": 3,
    "checkpoint_period_frames": 70,
    "inspect_period_frames": 200,
    "target_period_steps": 100,
    "epsilon_decay_steps": 500,
    "max_episode_steps": 60,
    "tensorboard": False,
}


def settings_for(env, **changes):
    return preset_settings(default_preset(env), env).override({**SMALL, **changes})


def rows(path):
    """The lines of a record without the one field that is measured by the wall clock."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "frames_per_second"} for row in found]


def final_state(run):
    state = read_container(checkpoint_paths(run / "checkpoints")[0] / "state.pser")
    del state["trainer"]["interval"]["seconds"]  # measured by the wall clock
    del state["records"]  # the lengths of files that hold measured times
    return state


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


def assert_same_run(run, expected):
    assert rows(run / "train.jsonl") == rows(expected / "train.jsonl")
    assert (run / "eval.jsonl").read_bytes() == (expected / "eval.jsonl").read_bytes()
    assert same(final_state(run), final_state(expected))
    for name in ("best", "last"):
        assert (run / f"snapshots/{name}.pser").read_bytes() == (
            expected / f"snapshots/{name}.pser"
        ).read_bytes()
    inspections = [sorted(path.name for path in (path / "inspect").glob("*")) for path in (run, expected)]
    assert inspections[0] == inspections[1]
    memories = [
        (checkpoint_paths(path / "checkpoints")[0] / "memory.pser").read_bytes() for path in (run, expected)
    ]
    assert memories[0] == memories[1]
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    assert (run / "status.json").read_bytes() == (expected / "status.json").read_bytes()


@pytest.mark.parametrize(
    ("env", "changes"),
    [
        ("gym:CartPole-v1", {"num_envs": 2, "n_step": 3, "initial": "td", "update_period_steps": 8}),
        ("minatar:breakout", {"num_envs": 1, "update_period_steps": 8}),
        ("atari:Breakout", {"num_envs": 2, "update_period_steps": 40, "checkpoint_period_frames": 140}),
    ],
)
def test_killed_and_resumed_equals_uninterrupted(tmp_path, env, changes):
    settings = settings_for(env, **changes)
    start_run(settings, "classic", tmp_path / "straight", Quiet())
    program = Path(__file__).with_name("kill_and_resume.py")
    arguments = [str(tmp_path / "killed"), "5", "0.3", "1", json.dumps(to_json(settings))]
    command = [sys.executable, "-W", "error", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2  # a fast machine may finish before the last kills
    assert_same_run(tmp_path / "killed", tmp_path / "straight")
