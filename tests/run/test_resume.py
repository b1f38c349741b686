"""A run killed with SIGKILL at random moments ends as one never interrupted: weights, memory, records."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pser.learner.presets import default_preset, preset_settings
from pser.learner.settings_json import to_json
from pser.run.progress import Quiet
from pser.run.training import start_run
from run.same_run import differences

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
    arguments = [str(tmp_path / "killed"), "5", "1", json.dumps(to_json(settings))]
    command = [sys.executable, "-W", "error", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2  # on a busy machine a run may end before it is seen to have come so far
    assert differences(tmp_path / "killed", tmp_path / "straight") == []


def test_a_run_that_ends_otherwise_is_seen(tmp_path):
    settings = settings_for("gym:CartPole-v1", budget_frames=140, update_period_steps=8)
    start_run(settings, "classic", tmp_path / "one", Quiet())
    start_run(settings.override({"seed": 1}), "classic", tmp_path / "other", Quiet())
    found = differences(tmp_path / "one", tmp_path / "other")
    assert {"train.jsonl", "state.pser", "memory.pser", "snapshots/last.pser"} <= set(found)
