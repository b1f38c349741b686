"""A run that is asked to stop writes a checkpoint, and its status never stays `running`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from pser.errors import PserError
from pser.learner.presets import preset_settings
from pser.records.checkpoint import checkpoint_paths
from pser.records.folder import RunFolder
from pser.run.progress import Busy, Quiet
from pser.run.stopping import ASKING, StopSignals
from pser.run.training import resume_run, start_run

SMALL = {
    "hidden": (8,),
    "capacity": 200,
    "warmup_steps": 20,
    "budget_frames": 160,
    "batch_size": 8,
    "eval_period_frames": 60,
    "eval_episodes": 2,
    "eval_num_envs": 1,
    "max_episode_steps": 20,
    "log_period_frames": 20,
    "checkpoint_period_frames": 0,
    "tensorboard": False,
}


@pytest.fixture(autouse=True)
def _signals_are_heard():
    """A shell starts background jobs, such as these tests, deaf to Ctrl-C: hear all signals as on a terminal."""
    before = {number: signal.getsignal(number) for number in ASKING}
    for number in ASKING:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Interrupting(Quiet):
    """Sends signals to its own process: one at a number of frames, one when the run says that it stops."""

    def __init__(self, first, *, at_frames=None, in_evaluation=False, then=None):
        self.first, self.at_frames, self.in_evaluation, self.then = first, at_frames, in_evaluation, then
        self.messages = []

    def logged(self, row):
        if row["frames"] == self.at_frames:
            os.kill(os.getpid(), self.first)

    def busy(self, what, total=0, unit=""):
        if what == "evaluating" and self.in_evaluation:
            self.in_evaluation = False
            os.kill(os.getpid(), self.first)
        return Busy(what, total, unit)

    def said(self, message):
        self.messages.append(message)
        if message.startswith("stopping") and self.then:
            os.kill(os.getpid(), self.then)

    def ended(self, message):
        self.messages.append(message)


def start(path, progress=None, **changes):
    settings = preset_settings("classic", "gym:CartPole-v1").override({**SMALL, **changes})
    start_run(settings, "classic", path, progress or Quiet())


def status(path):
    return json.loads((path / "status.json").read_text())["state"]


def records(path):
    """What a run leaves behind, but for times."""
    rows = [json.loads(line) for line in (path / "train.jsonl").read_text().splitlines()]
    for row in rows:
        del row["frames_per_second"]
    newest = checkpoint_paths(path / "checkpoints")[0]
    return rows, (path / "eval.jsonl").read_text(), (newest / "memory.pser").read_bytes()


@pytest.fixture
def whole(tmp_path):
    """A run that nobody stopped."""
    start(tmp_path / "whole")
    return records(tmp_path / "whole")


@pytest.mark.parametrize(
    ("number", "ending"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_a_first_signal_writes_a_checkpoint_and_says_so(tmp_path, whole, number, ending):
    path, progress = tmp_path / "run", Interrupting(number, at_frames=40)
    before = signal.getsignal(number)
    with pytest.raises(ending) as ended:
        start(path, progress)
    assert signal.getsignal(number) == before
    assert status(path) == "stopped"
    assert [folder.name for folder in checkpoint_paths(path / "checkpoints")] == ["frames-000000000040"]
    assert progress.messages[-1].startswith("stopped at 40 frames, checkpoint written: continue with")
    if ending is SystemExit:
        assert ended.value.code == 128 + number
    resume_run(path, Quiet())
    assert status(path) == "finished"
    assert records(path) == whole


def test_a_second_interrupt_stops_at_once(tmp_path, whole):
    path, progress = tmp_path / "run", Interrupting(signal.SIGINT, at_frames=40, then=signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        start(path, progress)
    assert status(path) == "stopped"
    assert checkpoint_paths(path / "checkpoints") == []
    assert "without a checkpoint" in progress.messages[-1]
    resume_run(path, Quiet())
    assert records(path) == whole


def test_a_second_sigterm_changes_nothing(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(SystemExit):
        start(path, Interrupting(signal.SIGTERM, at_frames=40, then=signal.SIGTERM))
    assert status(path) == "stopped"
    assert len(checkpoint_paths(path / "checkpoints")) == 1


@pytest.mark.parametrize("budget", [160, 60])
def test_an_evaluation_left_by_a_signal_is_made_up_for(tmp_path, budget):
    start(tmp_path / "whole", budget_frames=budget)
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        start(path, Interrupting(signal.SIGINT, in_evaluation=True), budget_frames=budget)
    assert status(path) == "stopped"
    assert (path / "eval.jsonl").read_text() == ""
    resume_run(path, Quiet())
    assert status(path) == "finished"
    assert records(path) == records(tmp_path / "whole")


def test_a_run_that_fails_while_it_stops_is_not_left_running(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pser.records.checkpoint.write_container", full)
    with pytest.raises(PserError, match="no disk space"):
        start(tmp_path / "run", Interrupting(signal.SIGTERM, at_frames=40))
    assert status(tmp_path / "run") == "failed"


def test_a_checkpoint_that_fails_in_the_background_fails_the_run(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pser.records.checkpoint.write_container", full)
    with pytest.raises(PserError, match="no disk space"):
        start(tmp_path / "run", Quiet(), checkpoint_period_frames=40)
    assert status(tmp_path / "run") == "failed"
    assert json.loads((tmp_path / "run/status.json").read_text())["frames"] < SMALL["budget_frames"]
    monkeypatch.undo()
    resume_run(tmp_path / "run", Quiet())
    assert status(tmp_path / "run") == "finished"


def test_a_signal_that_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals(lambda: None) as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.caught is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nothing_interrupts_the_last_words():
    with StopSignals(lambda: None) as signals:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # is not heard any more
        assert signals.caught is signal.SIGINT


def test_a_finished_run_is_extended(tmp_path):
    start(tmp_path / "whole", budget_frames=240, beta=0.5, beta_end=0.5)
    path, progress = tmp_path / "run", Interrupting(None)
    start(path, beta=0.5, beta_end=0.5)
    resume_run(path, progress)
    assert "is finished" in progress.messages[-1]
    resume_run(path, Quiet(), extend_frames=80)
    assert status(path) == "finished"
    assert records(path)[0] == records(tmp_path / "whole")[0]
    assert json.loads((path / "manifest.json").read_text())["extended_to_frames"] == 240
    resume_run(path, progress)
    assert "240 frames" in progress.messages[-1]


@pytest.mark.parametrize("left", ["its status", "a snapshot", "records"])
def test_a_run_that_lost_its_checkpoints_keeps_its_records(tmp_path, left):
    path = tmp_path / "run"
    start(path, checkpoint_period_frames=40)
    shutil.rmtree(path / "checkpoints")
    if left != "its status":
        (path / "status.json").unlink()
    if left != "a snapshot":
        (path / "snapshots/last.pser").unlink()
    if left != "records":
        lines = (path / "train.jsonl").read_text().splitlines(keepends=True)
        (path / "train.jsonl").write_text("".join(lines[:4]))  # 80 frames, two periods, tell nothing
    files = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(PserError, match=r"the run was at \d+ frames: put its checkpoints back"):
        resume_run(path, Quiet(), extend_frames=80)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == files


def test_a_run_killed_while_it_wrote_its_first_checkpoint_starts_anew(tmp_path):
    path = tmp_path / "run"
    start(path, checkpoint_period_frames=40)
    shutil.rmtree(path / "checkpoints")
    (path / "status.json").unlink()
    (path / "snapshots/last.pser").unlink()
    lines = (path / "train.jsonl").read_text().splitlines(keepends=True)
    (path / "train.jsonl").write_text("".join(lines[:4]))  # 80 frames, two periods
    resume_run(path, Quiet())
    assert records(path)[0][-1]["frames"] == 160


def test_an_extension_that_was_stopped_goes_on_to_its_end(tmp_path):
    path = tmp_path / "run"
    start(path)
    with pytest.raises(SystemExit):
        resume_run(path, Interrupting(signal.SIGTERM, at_frames=200), extend_frames=80)
    resume_run(path, Quiet())
    assert json.loads((path / "status.json").read_text()) == {
        "state": "finished",
        "frames": 240,
        "error": None,
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_from_outside_leaves_no_running_status(tmp_path, number):
    path = tmp_path / "run"
    command = [
        *(
            sys.executable,
            "-m",
            "pser",
            "train",
            "gym:CartPole-v1",
            "--run-dir",
            str(path),
            "--frames",
            "1e9",
        ),
        *("--hidden", "8", "--capacity", "500", "--log-period-frames", "50", "--tensorboard", "off"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (path / "train.jsonl").exists() or not (path / "train.jsonl").read_text():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(number)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert status(path) == "stopped"
    assert "checkpoint written" in out
    assert error == ""
    assert len(checkpoint_paths(RunFolder(path).checkpoints)) == 1
