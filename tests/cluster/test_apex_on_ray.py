"""`pser train --engine ray` with real processes, some of which are killed."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from tests.waiting import until

from cluster.test_apex import atari, cartpole, minatar, rows, synchronous
from pser.cli import main
from pser.cluster.settings import ClusterSettings, from_json
from pser.cluster.training import RayEngine
from pser.learner.events import IntervalLogged, Remark
from pser.records.checkpoint import write_checkpoint
from pser.records.folder import RunFolder
from pser.run.progress import Quiet
from pser.run.training import start_run
from run.same_run import differences


@pytest.mark.parametrize("settings", [cartpole(initial="td"), atari()], ids=["cartpole", "atari"])
def test_a_synchronous_run_is_that_of_one_process_to_the_bit(ray, settings, tmp_path):
    start_run(settings, "x", tmp_path / "local", Quiet())
    start_run(settings, "x", tmp_path / "ray", Quiet(), engine=synchronous(settings, RayEngine))
    assert rows(tmp_path / "ray")[-1]["updates"] > 0
    assert differences(tmp_path / "ray", tmp_path / "local") == []


def test_a_run_goes_on_after_an_actor_and_a_shard_were_killed(ray, tmp_path, capfd):
    settings = minatar(num_envs=2, budget_frames=3000, initial="td", capacity=5000, log_period_frames=200)
    remarks, logged, killed = [], [], set()
    with RayEngine(ClusterSettings(actors=2, shards=2, chunk_steps=20)).open(settings) as trainer:
        for event in trainer.train():
            if isinstance(event, Remark):
                remarks.append(event.text)
            if not isinstance(event, IntervalLogged):
                continue
            logged.append(event.row)
            if trainer.crew.pids[0] and trainer.replay.places.pids[1] and "actor" not in killed:
                killed.add("actor")
                os.kill(trainer.crew.pids[0], signal.SIGKILL)
            if trainer.losses.actors and "shard" not in killed:
                killed.add("shard")
                write_checkpoint(tmp_path, trainer.frames, {}, trainer.memory)
                os.kill(trainer.replay.places.pids[1], signal.SIGKILL)
        pids = [*trainer.crew.pids, *trainer.replay.places.pids]
    lost = [text.partition(" was lost")[0] for text in remarks if " was lost" in text]
    back = [
        re.sub(r" works again, [0-9.]+ s after its loss was noticed", "", text)
        for text in remarks
        if " was lost" not in text
    ]
    assert lost == ["actor 0", "shard 1"]
    # Who comes back first is chance, and the run may end before an actor does.
    assert "shard 1" in back
    assert set(back) <= {"actor 0", "shard 1"}
    assert logged[-1]["steps"] == 3000
    lost = logged[-1]["cluster"]
    assert (lost["actors_lost"], lost["shards_lost"]) == (1, 1)
    assert lost["longest_recovery_seconds"] > 0.0
    assert (
        lost["steps_lost"] <= 200 + 80
    )  # since the snapshot: one row of the records, and what was on its way
    assert logged[-1]["memory"]["size"] >= 3000 - 500 - lost["steps_lost"]
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err
    until(lambda: not any(map(is_running, pids)))


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_whose_learner_was_killed_is_resumed(ray, tmp_path, capfd):
    run = tmp_path / "run"
    small = ["--hidden", "8", "--capacity", "5000", "--warmup-steps", "200", "--eval-period-frames", "0"]
    periods = ["--checkpoint-period-frames", "500", "--log-period-frames", "250", "--frames", "1e6"]
    ray_flags = ["--engine", "ray", "--actors", "1", "--envs-per-actor", "3", "--samples-per-insert", "16"]
    address = ["--ray-address", ray.get_runtime_context().gcs_address]
    more = ["--tensorboard", "off", "--chunk-steps", "10", "--run-dir", str(run)]
    flags = ["train", "gym:CartPole-v1", *small, *periods, *ray_flags, *address, *more]
    with subprocess.Popen([sys.executable, "-m", "pser", *flags], stdout=subprocess.DEVNULL) as process:
        folder = RunFolder(run)  # the status tells of a checkpoint once it is written
        until(lambda: (folder.read_status() or {"frames": 0})["frames"] > 0 or process.poll() is not None)
        process.kill()
    manifest = json.loads((run / "manifest.json").read_text())
    assert from_json(manifest["engine"]) == ClusterSettings(actors=1, envs_per_actor=3, chunk_steps=10)
    assert manifest["settings"]["game"]["num_envs"] == 3
    assert manifest["settings"]["agent"]["update_period_steps"] == 4  # batches of 64
    assert RunFolder(run).read_status()["state"] == "running"
    frames = RunFolder(run).read_status()["frames"]

    # The next checkpoint is one of the run that goes on.
    command = [sys.executable, "-m", "pser", "train", "--resume", str(run), *address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        until(lambda: RunFolder(run).read_status()["frames"] > frames or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    assert RunFolder(run).read_status()["state"] == "stopped"
    (resumed,) = json.loads((run / "manifest.json").read_text())["resumed"]
    assert resumed["frames"] == frames
    assert 0 <= resumed["recorded_frames"] - frames <= 500 + 250  # a period, and what was on its way
    found = rows(run)
    logged = [row["frames"] for row in found]
    assert logged == sorted(set(logged))
    assert all(row["updates"] == max(0, row["steps"] // 4 - 200 // 4) for row in found)
    assert "Traceback" not in capfd.readouterr().err


def test_more_processes_than_cpus_are_refused(ray, tmp_path, capsys):
    address = ray.get_runtime_context().gcs_address
    flags = ["--engine", "ray", "--actors", "8", "--ray-address", address, "--run-dir", str(tmp_path / "run")]
    assert main(["train", "gym:CartPole-v1", *flags]) == 2
    assert "8 actors and 1 shards take a CPU each, the cluster has 2" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
