"""A checkpoint or snapshot with a right checksum and a wrong content is one line, and nothing is changed by it."""

import numpy as np
import pytest

from pser.cli import main
from pser.errors import PserError
from pser.files.container import read_container, write_container
from pser.learner.presets import preset_settings
from pser.records.checkpoint import STATE, checkpoint_paths
from pser.run.progress import Quiet
from pser.run.training import resume_run, start_run

SMALL = {
    "hidden": (8,),
    "capacity": 200,
    "warmup_steps": 20,
    "budget_frames": 80,
    "batch_size": 8,
    "eval_period_frames": 40,
    "eval_episodes": 1,
    "eval_num_envs": 1,
    "max_episode_steps": 20,
    "checkpoint_period_frames": 40,
    "tensorboard": False,
}


@pytest.fixture
def run(tmp_path):
    """A run that was stopped."""
    path = tmp_path / "run"
    start_run(preset_settings("classic", "gym:CartPole-v1").override(SMALL), "classic", path, Quiet())
    (path / "status.json").unlink()
    return path


def change(path, keys, value):
    """Put another value at a place of a container; None takes it away."""
    content = read_container(path)
    *parents, last = keys
    node = content
    for key in parents:
        node = node[key]
    if value is None:
        del node[last]
    else:
        node[last] = value
    write_container(path, content)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("trainer",), None),
        (("trainer",), 5),
        (("trainer", "agent", "optimizer"), {"other": 1}),
        (("trainer", "agent", "optimizer"), [1]),
        (("trainer", "agent", "online"), np.zeros(3, np.float32)),
        (("trainer", "agent", "target"), "x"),
        (("trainer", "counters", "steps"), None),
        (("trainer", "counters"), {"other": 1}),
        (("trainer", "exploration"), {"bit_generator": "MT19937"}),
        (("trainer", "exploration"), 7),
        (("trainer", "game"), {}),
        (("records",), {}),
        (("records", "train"), -5),
        (("best",), {"frames": 3}),
    ],
)
def test_an_edited_checkpoint_is_one_line(run, keys, value):
    change(checkpoint_paths(run / "checkpoints")[0] / STATE, keys, value)
    records = (run / "train.jsonl").read_bytes()
    with pytest.raises(PserError) as error:
        resume_run(run, Quiet())
    assert "\n" not in str(error.value)
    assert (run / "train.jsonl").read_bytes() == records


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("weights", None),
        ("weights", np.zeros(3, np.float32)),
        ("weights", np.zeros((2, 2), np.float32)),
        ("weights", "x"),
        ("frames", "x"),
        ("mean_return", "x"),
        ("more", 1),
    ],
)
def test_an_edited_snapshot_is_one_line(run, key, value, capsys):
    change(run / "snapshots/best.pser", (key,), value)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: ")
    assert error.count("\n") == 1
