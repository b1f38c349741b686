"""Train in child processes that are killed with SIGKILL, each further on in the run, then let one finish.

    python kill_and_resume.py RUN_DIR KILLS SEED SETTINGS_JSON

Prints how many of the kills met a running training. A program of its own, so that it can fork with torch loaded.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from pser.learner.settings_json import from_json
from pser.run.progress import Quiet
from pser.run.training import resume_run, start_run

SOON = 0.02
"""Seconds: about those from one record to the next."""


def train(path, settings):
    """Start the run, or continue it if it was started before."""
    if (path / "manifest.json").exists():
        resume_run(path, Quiet())
    else:
        start_run(settings, "classic", path, Quiet())


def in_child(path, settings):
    """The process id of a child that trains."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train(path, settings)
            code = 0
        finally:
            os._exit(code)
    return child


def finish(path, settings):
    """The exit code of a child that trains to the end."""
    _, status = os.waitpid(in_child(path, settings), 0)
    return os.waitstatus_to_exitcode(status)


def kill(path, settings, moments, latest, *, while_writing=False):
    """Train in a child and kill it at a random moment, or while it writes a checkpoint: (met, was writing)."""
    child = in_child(path, settings)
    while not (path / "manifest.json").exists():
        time.sleep(0.001)
    deadline = time.monotonic() + moments.uniform(0.0, latest)
    if while_writing:
        deadline = time.monotonic() + 20.0 * latest
        while time.monotonic() < deadline and not writes(path) and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.0002)
    else:
        time.sleep(max(0.0, deadline - time.monotonic()))
    met = hit(child)
    return met, met and writes(path)


def kill_beyond(path, settings, frames, moments):
    """Train in a child and kill it soon after its records reach so far; whether it still ran then."""
    child = in_child(path, settings)
    while recorded(path) < frames and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    time.sleep(moments.uniform(0.0, SOON))
    return hit(child)


def recorded(path):
    """The frames of the last record of the training; 0 as long as there is none."""
    train = path / "train.jsonl"
    *_, last = ["", *(train.read_text().split("\n")[:-1] if train.exists() else [])]
    return json.loads(last)["frames"] if last else 0


def hit(child):
    """Kill the child; whether it was still there."""
    try:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):  # it had finished
        return False
    return os.WIFSIGNALED(status)


def writes(path):
    """Whether a checkpoint is half written."""
    return any((path / "checkpoints").glob(".writing-*"))


def main():
    path, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    settings = from_json(json.loads(sys.argv[4]))
    moments, end = random.Random(seed), settings.run.budget_frames
    beyond = sorted(moments.uniform(0.0, 0.8 * end) for _ in range(kills))
    print(sum(kill_beyond(path, settings, frames, moments) for frames in beyond))
    return finish(path, settings)


if __name__ == "__main__":
    sys.exit(main())
