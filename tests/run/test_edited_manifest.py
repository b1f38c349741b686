"""A run keeps the settings it was started with."""

import json

import pytest

from pser.errors import PserError
from pser.learner.presets import preset_settings
from pser.records.checkpoint import STATE, checkpoint_paths
from pser.records.folder import RunFolder
from pser.run.progress import Quiet
from pser.run.training import resume_run, start_run

SMALL = {
    "hidden": (8,),
    "capacity": 200,
    "warmup_steps": 20,
    "budget_frames": 80,
    "batch_size": 8,
    "eval_period_frames": 0,
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


def edit(path, group, name, value):
    manifest = json.loads((path / "manifest.json").read_text())
    before = manifest["settings"][group][name]
    manifest["settings"][group][name] = value
    (path / "manifest.json").write_text(json.dumps(manifest))
    return before


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [("replay", "n_step", 1), ("replay", "capacity", 300), ("run", "seed", 5), ("agent", "gamma", 0.5)],
)
def test_resuming_a_run_whose_manifest_was_edited_refuses_and_names_both_values(run, group, name, value):
    before = edit(run, group, name, value)
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(PserError, match=f"{name} {value} .the run has {before}.*restore it"):
        resume_run(run, Quiet())
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files


def test_an_earlier_checkpoint_is_held_against_its_memory(run):
    from pser.files.container import read_container, write_container

    for path in checkpoint_paths(RunFolder(run).checkpoints):
        state = read_container(path / STATE)
        del state["settings"]
        write_container(path / STATE, state)
    resume_run(run, Quiet())
    (run / "status.json").unlink()
    before = edit(run, "replay", "capacity", 300)
    with pytest.raises(PserError, match=f"capacity 300 .the run has {before}"):
        resume_run(run, Quiet())
