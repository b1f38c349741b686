"""Where a run's numbers go beside its own files: TensorBoard, and Weights & Biases or trackio if asked for.

A tracker takes the rows of the records as they are written. Another one needs a class with `add` and `close`, and a
line in `TRACKERS`.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.records.folder import RunFolder
from pser.records.tensorboard import TensorBoard, numbers_of

PROJECT = "pser"


class Tracker(Protocol):
    """Takes the rows of train.jsonl ("train") and eval.jsonl ("eval")."""

    def add(self, group: str, row: dict[str, Any]) -> None:
        """Note the numbers of a row at its frames."""
        ...

    def close(self) -> None:
        """Write what is pending."""
        ...


class WandB:
    """Weights & Biases: online, or offline by WANDB_MODE=offline; its files go into the run's folder."""

    def __init__(self, folder: RunFolder, settings: TrainSettings) -> None:
        wandb = import_module("wandb")
        self._run = wandb.init(
            project=PROJECT,
            name=run_name(settings),
            id=run_id(folder),
            resume="allow",
            dir=str(folder.path),
            config=asdict(settings),
            settings={"silent": True},  # the run's own panel has the screen
        )
        self._run.define_metric("*", step_metric="frames")  # a resumed run goes back a little: steps may not

    def add(self, group: str, row: dict[str, Any]) -> None:
        """Note the numbers of a row at its frames."""
        self._run.log({"frames": row["frames"], **numbers_of(group, row)})

    def close(self) -> None:
        """Write what is pending."""
        self._run.finish()


class Trackio:
    """trackio: a database of its own on this machine (`trackio show`)."""

    def __init__(self, folder: RunFolder, settings: TrainSettings) -> None:
        trackio = import_module("trackio")
        name = f"{run_name(settings)} {run_id(folder)}"
        self._run = trackio.init(
            project=PROJECT, name=name, resume="allow", config=asdict(settings), embed=False
        )
        self._finish = trackio.finish

    def add(self, group: str, row: dict[str, Any]) -> None:
        """Note the numbers of a row at its frames."""
        self._run.log(numbers_of(group, row), step=row["frames"])

    def close(self) -> None:
        """Write what is pending."""
        self._finish()


TRACKERS: dict[str, Callable[[RunFolder, TrainSettings], Tracker]] = {"wandb": WandB, "trackio": Trackio}
"""Name of the choice, and of the package it needs → the tracker."""


class Trackers:
    """All trackers of a run."""

    def __init__(self, folder: RunFolder, settings: TrainSettings, frames: int) -> None:
        run = settings.run
        self._all: list[Tracker] = [TensorBoard(folder.tensorboard, enabled=run.tensorboard, frames=frames)]
        if run.track != "none":
            require_tracker(run.track)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the package's own imports
                self._all.append(TRACKERS[run.track](folder, settings))

    def add(self, group: str, row: dict[str, Any]) -> None:
        """Give a row to all of them."""
        for tracker in self._all:
            tracker.add(group, row)

    def close(self) -> None:
        """Close all of them."""
        for tracker in self._all:
            tracker.close()


def require_tracker(name: str) -> None:
    """Refuse a tracker whose package is not installed."""
    if name != "none" and find_spec(name) is None:
        raise PserError(
            f"--track {name} needs the package {name}, which is not installed: pip install {name}"
        )


def run_name(settings: TrainSettings) -> str:
    """How a run is called among others."""
    return f"{settings.game.env} {settings.replay.label} seed {settings.run.seed}"


def run_id(folder: RunFolder) -> str:
    """The same for a run and its continuation, and for no other."""
    manifest = json.loads(folder.manifest.read_text())
    told = [manifest[key] for key in ("started", "env", "label", "seed")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]
