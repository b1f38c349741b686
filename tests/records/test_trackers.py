"""Trackers: the rows of the records reach TensorBoard, Weights & Biases and trackio; what is missing is said."""

import json
import sqlite3
import sys
import time
import types
from dataclasses import asdict

import pytest

from pser.cli import main
from pser.errors import PserError
from pser.learner.presets import classic
from pser.records.folder import RunFolder
from pser.records.tensorboard import numbers_of
from pser.records.trackers import TRACKERS, Trackers, require_tracker, run_id

ROW = {"frames": 10, "loss": 0.5, "return_mean": None, "memory": {"size": 3}}
MANIFEST = {
    "started": "2026-01-01T00:00:00",
    "env": "gym:CartPole-v1",
    "label": "PSER_MaxPrio_MAX",
    "seed": 0,
}


def settings_for(**changes):
    return classic("gym:CartPole-v1").override({"tensorboard": False, **changes})


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.manifest.write_text(json.dumps(MANIFEST))
    return folder


def test_numbers_are_named_by_their_place_and_nothing_else_is_sent():
    assert numbers_of("train", ROW) == {"train/loss": 0.5, "train/memory/size": 3}


class Recorder:
    """Stands for the run object of a tracker's package."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **more: self.calls.append((name, args, more))


def stand_in(monkeypatch, name):
    """A package of that name which notes what it is asked."""
    run, package = Recorder(), types.ModuleType(name)
    package.__spec__ = types.SimpleNamespace(name=name)
    package.init = lambda **asked: setattr(run, "asked", asked) or run
    package.finish = lambda: run.calls.append(("finish", (), {}))
    monkeypatch.setitem(sys.modules, name, package)
    return run


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_is_told_the_run_its_settings_and_every_row(name, folder, monkeypatch):
    run, settings = stand_in(monkeypatch, name), settings_for(track=name)
    trackers = Trackers(folder, settings, frames=0)
    trackers.add("train", ROW)
    trackers.close()
    assert run.asked["project"] == "pser"
    assert run.asked["name"].startswith("gym:CartPole-v1 PSER_MaxPrio_MAX seed 0")
    assert run.asked["resume"] == "allow"
    assert run.asked["config"] == asdict(settings)
    calls = [call for call in run.calls if call[0] != "define_metric"]
    assert [call[0] for call in calls] == ["log", "finish"]
    _, (sent,), more = calls[0]
    assert sent["train/loss"] == 0.5
    assert 10 in (sent.get("frames"), more.get("step"))


def test_a_continued_run_is_the_same_run_to_a_tracker_and_another_is_not(folder, tmp_path):
    first = run_id(folder)
    assert run_id(RunFolder(folder.path)) == first
    folder.manifest.write_text(json.dumps({**MANIFEST, "seed": 1}))
    assert run_id(folder) != first


@pytest.mark.parametrize("name", TRACKERS)
def test_a_package_that_is_missing_is_named_before_anything_is_written(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pser.records.trackers.find_spec", lambda _: None)
    with pytest.raises(PserError, match=f"pip install {name}"):
        require_tracker(name)
    command = ["train", "gym:CartPole-v1", "--track", name, "--run-dir", str(tmp_path / "run")]
    assert main(command) == 2
    assert f"--track {name} needs the package {name}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    require_tracker("none")


def test_weights_and_biases_keeps_a_run_offline(folder, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    trackers = Trackers(folder, settings_for(track="wandb"), frames=0)
    for frames in (10, 20):
        trackers.add("train", {**ROW, "frames": frames})
    trackers.close()
    (file,) = (folder.path / "wandb").glob(f"offline-run-*/run-{run_id(folder)}.wandb")
    for _ in range(100):  # a process of its own writes it
        if b"train/memory/size" in file.read_bytes():
            break
        time.sleep(0.1)
    assert b"train/memory/size" in file.read_bytes()


def test_trackio_keeps_a_run_on_this_machine(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    trackers = Trackers(folder, settings_for(track="trackio"), frames=0)
    for frames in (10, 20):
        trackers.add("train", {**ROW, "frames": frames})
    trackers.close()
    (file,) = (tmp_path / "trackio").glob("pser*.db")
    with sqlite3.connect(file) as database:
        rows = database.execute("select step, metrics from metrics order by step").fetchall()
    assert [step for step, _ in rows] == [10, 20]
    assert json.loads(rows[0][1])["train/loss"] == 0.5
