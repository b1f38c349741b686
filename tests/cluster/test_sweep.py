"""`pser sweep --engine ray`: runs as Ray tasks, what is lost goes on, and what cannot be is refused."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from tests.waiting import PATIENCE, until

from pser.cli import main, sweep
from pser.cluster import engine
from pser.cluster import sweep as ray_sweep
from pser.cluster.sweep import RayTasks
from pser.errors import PserError
from pser.learner.presets import preset_settings
from pser.learner.settings_json import to_json
from pser.records.folder import RunFolder
from pser.run.job import Job

SMALL = {
    "budget_frames": 40,
    "warmup_steps": 20,
    "capacity": 100,
    "batch_size": 4,
    "hidden": (8,),
    "eval_period_frames": 0,
    "tensorboard": False,
}


def job_of(folder, **changes):
    """A short run."""
    wanted = preset_settings("classic", "gym:CartPole-v1").override({**SMALL, **changes})
    return Job(folder.name, folder, to_json(wanted), "classic", "pser sweep")


def note(folder):
    return json.loads(folder.with_name(folder.name + ".node").read_text())


def checkpoints(folder):
    return list((folder / "checkpoints").glob("*")) if (folder / "checkpoints").exists() else []


def test_a_sweep_on_ray_finishes_its_runs_and_says_where(ray, tmp_path, capsys):
    grid = ["--envs", "gym:CartPole-v1", "--replay", "per", "--seeds", "0"]
    flags = [*grid, "--frames", "40", "--hidden", "8"]
    small = ["--warmup-steps", "20", "--capacity", "100", "--batch-size", "4", "--eval-period-frames", "0"]
    command = ["sweep", *flags, *small, "--tensorboard", "off", "--out", str(tmp_path), "--engine", "ray"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    node = ray.util.get_node_ip_address()
    assert "1 runs in" in printed
    assert f"seed 0: finished (on {node})" in printed
    run = tmp_path / "gym-CartPole-v1/PER_MaxPrio/seed-0"
    assert RunFolder(run).read_status()["state"] == "finished"
    assert not list(tmp_path.rglob("*.node"))
    assert main(command) == 0
    assert "was finished before" in capsys.readouterr().out


def test_a_run_whose_worker_is_killed_goes_on_from_its_checkpoint(ray, tmp_path):
    job = job_of(tmp_path / "run", budget_frames=6000, checkpoint_period_frames=300, log_period_frames=100)
    with RayTasks() as tasks:
        future = tasks.submit(job)
        until(lambda: checkpoints(job.folder))
        os.kill(note(job.folder)["pid"], signal.SIGKILL)
        until(lambda: note(job.folder)["attempt"] == 2 or future.done())
        assert tasks.where(job) == f"{ray.util.get_node_ip_address()}, attempt 2"
        until(future.running)
        outcome = future.result(timeout=PATIENCE)
    assert (outcome.code, outcome.message) == (0, "")
    assert outcome.where.endswith(", attempt 2")
    assert "resuming" in (tmp_path / "run.log").read_text()
    frames = [json.loads(line)["frames"] for line in (job.folder / "train.jsonl").read_text().splitlines()]
    assert frames == sorted(set(frames))
    assert RunFolder(job.folder).read_status() == {"state": "finished", "frames": 6000, "error": None}


def test_a_run_on_a_machine_that_ray_no_longer_knows_is_begun_again(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_sweep, "NODES_SECONDS", 0.2)
    monkeypatch.setattr(ray_sweep, "CUT_OFF_SECONDS", 0.2)
    frames = 20_000
    job = job_of(tmp_path / "run", budget_frames=frames, checkpoint_period_frames=500, log_period_frames=100)
    with RayTasks() as tasks:
        future = tasks.submit(job)
        until(lambda: checkpoints(job.folder))
        path = job.folder.with_name("run.node")
        path.write_text(json.dumps({**note(job.folder), "node_id": "of a machine cut off"}))
        outcome = future.result(timeout=PATIENCE)
    assert (outcome.code, outcome.message) == (0, "")
    assert outcome.where.endswith(", attempt 2")
    assert "resuming" in (tmp_path / "run.log").read_text()
    assert RunFolder(job.folder).read_status() == {"state": "finished", "frames": frames, "error": None}


@pytest.mark.parametrize("goes_on", [True, False])
def test_an_attempt_waits_for_an_earlier_one_as_long_as_that_goes_on(tmp_path, monkeypatch, goes_on):
    monkeypatch.setattr(ray_sweep, "LOCK_SECONDS", 1.0)
    (tmp_path / "manifest.json").write_text("{}")
    folder = RunFolder(tmp_path)
    with folder.locked(), ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ray_sweep._await_lock, tmp_path)
        for step in range(25):  # longer than an attempt waits
            if goes_on:
                folder.train.write_text(f"{step}")
            time.sleep(0.1)
        assert waiting.done() != goes_on
        if goes_on:
            folder.train.unlink()
            waiting.result(timeout=PATIENCE)  # nothing is written any more


def test_a_run_that_was_carried_to_its_end_out_of_reach_is_finished(ray, tmp_path):
    job = job_of(tmp_path / "run")
    with RayTasks() as tasks:
        assert tasks.submit(job).result().code == 0
    before = (tmp_path / "run.log").read_text()
    with RayTasks() as tasks:
        assert tasks.submit(job).result().code == 0
    assert (tmp_path / "run.log").read_text() == before


def test_a_failed_run_tells_its_last_line_and_takes_no_other_with_it(ray, tmp_path):
    bad = job_of(tmp_path / "bad")
    bad.settings["game"]["env"] = "nes:Mario"
    with RayTasks() as tasks:
        failed, good = tasks.submit(bad), tasks.submit(job_of(tmp_path / "good"))
    assert failed.result().code == 2
    assert failed.result().message.startswith("pser: ")
    assert good.result().code == 0


def test_a_stopped_sweep_stops_its_runs_with_a_checkpoint(ray, tmp_path):
    job = job_of(tmp_path / "long", budget_frames=10_000_000, log_period_frames=100)
    train = job.folder / "train.jsonl"

    def stopped_while_training():
        with RayTasks() as tasks:
            futures.append(tasks.submit(job))
            until(lambda: train.exists() and train.stat().st_size)
            raise KeyboardInterrupt

    futures = []
    with pytest.raises(KeyboardInterrupt):
        stopped_while_training()
    [future] = futures
    assert future.result().code == 130
    until(lambda: RunFolder(job.folder).read_status()["state"] == "stopped")
    assert checkpoints(job.folder)


def test_the_runs_of_a_killed_sweep_end_with_it(ray, tmp_path):
    flags = ["--envs", "gym:CartPole-v1", "--replay", "per", "--seeds", "0", "--out", str(tmp_path)]
    address = ["--engine", "ray", "--ray-address", ray.get_runtime_context().gcs_address]
    command = [sys.executable, "-m", "pser", "sweep", *flags, *address, "--log-period-frames", "100"]
    run = tmp_path / "gym-CartPole-v1/PER_MaxPrio/seed-0"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        until(lambda: (run / "train.jsonl").exists() and (run / "train.jsonl").stat().st_size)
        assert is_locked(run)
        process.kill()
    until(lambda: not is_locked(run))


def is_locked(folder):
    try:
        with RunFolder(folder).locked():
            return False
    except PserError:
        return True


class FakeRay:
    """A cluster on which each wait does the next of these: raise it, or return it of the tasks."""

    exceptions = SimpleNamespace(RayError=ConnectionError, TaskCancelledError=KeyboardInterrupt)

    def __init__(self, *waits):
        self.waits = iter(waits)

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": 2.0}, "NodeID": "one"}]

    def remote(self, **_):
        return lambda function: self

    def options(self, name):
        return SimpleNamespace(remote=lambda *_: object())

    def wait(self, refs, **_):
        done = next(self.waits)
        if isinstance(done, Exception):
            raise done
        return (refs, []) if done == "ended" else ([], refs)

    def get(self, ref):
        return 0, ""


def test_runs_fail_with_the_reason_when_ray_does(tmp_path, monkeypatch):
    gone = ConnectionError("the head is gone:\nno answer")
    monkeypatch.setattr(ray_sweep, "join_ray", lambda address: (FakeRay(gone, gone, gone), False))
    with RayTasks() as tasks:
        for name in ("a", "b"):  # the second, when the first has failed
            outcome = tasks.submit(job_of(tmp_path / name)).result(timeout=30.0)
            assert outcome.code == 137
            assert outcome.message == (
                "Ray failed (ConnectionError: the head is gone: no answer): the same command goes on from here"
            )


def test_a_folder_that_cannot_be_looked_at_for_a_moment_ends_no_run(tmp_path, monkeypatch):
    def stale(path):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(ray_sweep, "join_ray", lambda address: (FakeRay("running", "ended"), False))
    job = job_of(tmp_path / "run")
    with RayTasks() as tasks:
        monkeypatch.setattr("pathlib.Path.exists", stale)
        assert tasks.submit(job).result(timeout=30.0).code == 0
        monkeypatch.undo()


def test_a_run_waits_until_there_is_room(ray, tmp_path):
    long = job_of(tmp_path / "long", budget_frames=10_000_000)
    short = job_of(tmp_path / "second")

    def stopped_while_one_waits():
        with RayTasks(cpus=2.0) as tasks:
            first = tasks.submit(long)
            until(first.running)
            second = tasks.submit(short)
            time.sleep(2.5)  # longer than the executor takes to look
            assert not second.running()
            assert tasks.where(short) == ""
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_while_one_waits()
    assert not (tmp_path / "second").exists()


def test_a_run_that_fits_on_no_machine_is_refused(ray):
    with pytest.raises(PserError, match=r"a run of 64 CPUs fits on no machine .* the largest has 2"):
        RayTasks(cpus=64)


def test_without_ray_the_flag_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", "--envs", "gym:CartPole-v1", "--out", str(tmp_path), "--engine", "ray"]) == 2
    assert "need ray, which is not installed: pip install 'pser[ray]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_address_without_a_cluster_is_refused_in_one_line(monkeypatch):
    def init(**_):
        raise ConnectionError("Could not find any running Ray instance.\nMore of it.")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(
        PserError, match=r"no Ray cluster at 'auto' \(Could .* instance\.\): begin one"
    ) as caught:
        engine.join_ray("auto")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--engine", "ray", "--jobs", "2"], "with --engine ray the CPUs decide, got --jobs 2"),
        (["--ray-address", "auto"], "--ray-address is for Ray, got 'auto'"),
        (["--engine", "ray", "--cpus-per-run", "0"], "cpus_per_run must be above 0"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(tmp_path, flags, told):
    with pytest.raises(PserError, match=told):
        sweep.parse(["--envs", "gym:CartPole-v1", "--out", str(tmp_path), *flags])
