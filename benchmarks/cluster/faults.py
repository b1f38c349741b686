"""How soon a run goes on after a part of it is lost: real processes, killed; what the run's own records say of it.

The time counts from the notice: when Ray tells the learner, or begins a sweep's run again, or a person resumes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from tests.cluster.machines import Machines, namespaces_are_permitted

from pser.cluster.settings import ClusterSettings
from pser.cluster.sweep import RayTasks
from pser.cluster.training import RayEngine
from pser.learner.events import IntervalLogged
from pser.learner.presets import preset_settings
from pser.learner.settings_json import to_json
from pser.records.checkpoint import write_checkpoint
from pser.records.folder import RunFolder
from pser.records.jsonl import newest_frames
from pser.run.job import Job

PERIOD = 1_000
"""Frames between two snapshots."""
SMALL: dict[str, Any] = {
    "hidden": (8,),
    "capacity": 20_000,
    "warmup_steps": 200,
    "eval_period_frames": 0,
    "checkpoint_period_frames": PERIOD,
    "log_period_frames": 100,
    "tensorboard": False,
}
FLAGS = ["--hidden", "8", "--capacity", "20000", "--warmup-steps", "200", "--eval-period-frames", "0"]
FLAGS += ["--checkpoint-period-frames", str(PERIOD), "--log-period-frames", "100", "--tensorboard", "off"]
ENGINE = ["--engine", "ray", "--chunk-steps", "10", "--frames", "1e7"]
LIMIT_SECONDS = 300.0


def measure(started_ray: Callable[[], contextlib.AbstractContextManager[None]]) -> dict[str, Any]:
    """What was killed → seconds until it went on, and the steps that were lost or are played again."""
    with started_ray():
        rows = _parts_of_a_run() | {"the learner": _learner(), "a sweep's worker": _worker()}
    apart = namespaces_are_permitted()
    name = "one of three machines, " + ("cut off the network" if apart else "its raylet killed")
    rows[name] = _machine(apart)
    return {"period": PERIOD, "rows": rows}


def _parts_of_a_run() -> dict[str, Any]:
    """An actor, then a shard just before its next snapshot."""
    settings = preset_settings("classic", "gym:CartPole-v1").override(
        SMALL | {"num_envs": 2, "initial": "td", "budget_frames": 10**7}
    )
    found: dict[str, Any] = {}
    engine = RayEngine(ClusterSettings(actors=2, shards=2, chunk_steps=10))
    with tempfile.TemporaryDirectory() as folder, engine.open(settings) as trainer:
        saved, victim, before = 0, "", 0
        for event in trainer.train():
            if not isinstance(event, IntervalLogged):
                continue
            losses, pids = trainer.losses, (trainer.crew.pids[0], trainer.replay.places.pids[1])
            if victim and losses.longest_seconds:
                found[victim] = {"seconds": losses.longest_seconds, "lost": losses.steps - before}
                losses.longest_seconds, before, victim = 0.0, losses.steps, ""
            if len(found) == 2:
                return found
            if victim or not all(pids):
                continue
            if not found:
                victim = "an actor"
                os.kill(pids[0], signal.SIGKILL)
            elif not saved:
                write_checkpoint(Path(folder), trainer.frames, {}, trainer.memory)
                saved = trainer.frames
            elif trainer.frames >= saved + PERIOD - 100:
                victim = "a shard"
                os.kill(pids[1], signal.SIGKILL)
    raise RuntimeError("the run ended")


def _worker() -> dict[str, Any]:
    """The process of Ray that carries a run of a sweep out."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        settings = preset_settings("classic", "gym:CartPole-v1").override(SMALL | {"budget_frames": 10**7})
        job = Job("run", run, to_json(settings), "classic", "pser sweep")
        note = run.with_name("run.node")
        with contextlib.suppress(KeyboardInterrupt), RayTasks() as tasks:
            tasks.submit(job)
            _until(lambda: _saved(run) and newest_frames(run / "train.jsonl") % PERIOD >= PERIOD - 200)
            os.kill(json.loads(note.read_text())["pid"], signal.SIGKILL)
            _until(lambda: json.loads(note.read_text())["attempt"] == 2)
            noticed = time.monotonic()
            found = _resumed(run, noticed)
            raise KeyboardInterrupt  # the rest of the run is not needed
    return found


def _learner() -> dict[str, Any]:
    """The command itself; then it is resumed, on the same cluster."""
    import ray

    address = ["--ray-address", ray.get_runtime_context().gcs_address]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "pser", "train"]
        begin = [
            *command,
            "gym:CartPole-v1",
            *FLAGS,
            *ENGINE,
            "--actors",
            "2",
            "--run-dir",
            str(run),
            *address,
        ]
        with _process(begin, Path(folder) / "begun") as process:
            _until(lambda: _saved(run) and newest_frames(run / "train.jsonl") % PERIOD >= PERIOD - 200)
            process.kill()
        noticed = time.monotonic()
        with _process([*command, "--resume", str(run), *address], Path(folder) / "resumed") as process:
            found = _resumed(run, noticed)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    return found


def _machine(apart: bool) -> dict[str, Any]:
    """A machine with a shard on it."""
    with tempfile.TemporaryDirectory() as folder, Machines(3, folder, apart=apart, cpus=3) as machines:
        run = Path(folder) / "run"
        address = ["--ray-address", machines.address, "--run-dir", str(run), "--actors", "3", "--shards", "2"]
        command = [sys.executable, "-m", "pser", "train", "gym:CartPole-v1", *FLAGS, *ENGINE, *address]
        with _process(
            machines.inside(0, command), Path(folder) / "printed", machines.environment()
        ) as process:
            _until(lambda: _saved(run) and any(_holds_shard(machines, number) for number in (1, 2, 3)))
            machines.lose(next(number for number in (1, 2, 3) if _holds_shard(machines, number)))
            _until(lambda: _harm(run)["shards_lost"] > 0 and _harm(run)["longest_recovery_seconds"] > 0)
            newest = newest_frames(run / "train.jsonl")
            _until(
                lambda: newest_frames(run / "train.jsonl") > newest + PERIOD
            )  # whatever else was lost there
            harm = _harm(run)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    return {"seconds": harm["longest_recovery_seconds"], "lost": harm["steps_lost"]}


def _holds_shard(machines: Machines, number: int) -> bool:
    for process in psutil.process_iter(["pid", "cmdline"]):
        title = " ".join(process.info["cmdline"] or [])
        if title.startswith("ray::Shard") and machines.has(number, process.info["pid"]):
            return True
    return False


def _resumed(run: Path, noticed: float) -> dict[str, Any]:
    """How long until the records go on from the checkpoint, and how much of them is played again."""
    _until(lambda: "resumed" in json.loads((run / "manifest.json").read_text()))
    (resumed,) = json.loads((run / "manifest.json").read_text())["resumed"]
    _until(lambda: newest_frames(run / "train.jsonl") > resumed["frames"] and _is_cut(run, resumed))
    return {
        "seconds": time.monotonic() - noticed,
        "lost": max(0, resumed["recorded_frames"] - resumed["frames"]),
    }


def _is_cut(run: Path, resumed: dict[str, int]) -> bool:
    """Whether the record was cut back to the checkpoint: then its newest row is one of the run that goes on."""
    return (RunFolder(run).read_status() or {"state": ""})["state"] == "running" and (
        (run / "train.jsonl").stat().st_mtime >= (run / "manifest.json").stat().st_mtime
    )


def _saved(run: Path) -> bool:
    return any((run / "checkpoints").glob("frames-*"))


def _harm(run: Path) -> dict[str, Any]:
    lines = (run / "train.jsonl").read_text().splitlines(keepends=True)
    harm: dict[str, Any] = json.loads([line for line in lines if line.endswith("\n")][-1])["cluster"]
    return harm


@contextlib.contextmanager
def _process(
    command: list[str], printed: Path, environment: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A command as a process that ends with the context."""
    with (
        open(printed, "wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing went on")
        time.sleep(0.02)
