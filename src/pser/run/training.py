"""Running a training with its records: the listeners of the training loop, put together."""

import contextlib
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pser
from pser.env.game import Game
from pser.errors import PserError
from pser.files.atomic import explain_disk_error, require_space
from pser.learner.device import configure_torch
from pser.learner.evaluation import evaluate
from pser.learner.events import (
    CheckpointDue,
    EvaluationDue,
    InspectionDue,
    IntervalLogged,
    TrainingFinished,
)
from pser.learner.games import evaluation_game, training_game
from pser.learner.loop import Trainer, observation_shape
from pser.learner.seeds import derived_seed
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import from_json, to_json
from pser.records.checkpoint import Checkpoint, read_newest_checkpoint, write_checkpoint
from pser.records.folder import RunFolder
from pser.records.inspection import forget_inspections_after, inspect_memory, write_inspection
from pser.records.jsonl import JsonLines
from pser.records.manifest import build_manifest, read_manifest, settings_of, write_manifest
from pser.records.snapshot import Snapshot, write_snapshot
from pser.records.tensorboard import TensorBoard
from pser.records.trust import refuse_imports
from pser.run.progress import Progress


def start_run(
    settings: TrainSettings, preset: str, path: Path, progress: Progress, *, command: str | None = None
) -> None:
    """Train a new agent; all that the run leaves behind goes into `path`, which must be new or empty.

    Whatever can be refused is refused before anything is written: a folder once taken keeps its settings.
    """
    folder = RunFolder(path)
    with contextlib.closing(training_game(settings)) as game:
        settings = settings.override({"env": game.name})  # one spelling, whatever case was typed
        trainer = build_trainer(settings, game)
        if settings.evaluation.eval_period_frames:
            evaluation_game(settings).close()
        manifest = build_manifest(settings, preset, command)
        folder.create()
        require_space(path, checkpoint_bytes(settings, game), "three checkpoints of this run")
        with folder.locked():
            write_manifest(folder.manifest, manifest)
            _run(folder, trainer, None, progress)


def resume_run(path: Path, progress: Progress, *, trusted: Collection[str] = ()) -> None:
    """Continue a run from its newest whole checkpoint; a run that was finished is left alone.

    `trusted`: modules that the run's manifest may ask to import.
    """
    folder = RunFolder(path)
    settings = settings_of(read_manifest(folder.manifest))
    refuse_imports(settings, folder.manifest, trusted)
    status = folder.read_status()
    if status and status["state"] == "finished":
        progress.said(f"{path} is finished: {status['frames']:,} frames")
        return
    with folder.locked():
        with _warnings_said(progress):
            checkpoint = read_newest_checkpoint(folder.checkpoints)
        if checkpoint:
            refuse_edited(settings, checkpoint, folder.manifest)
        where = (
            f"at {checkpoint.state['frames']:,} frames" if checkpoint else "from the start: no checkpoint yet"
        )
        progress.said(f"resuming {path} {where}")
        with contextlib.closing(training_game(settings)) as game:
            _run(folder, build_trainer(settings, game), checkpoint, progress)


def refuse_edited(settings: TrainSettings, checkpoint: Checkpoint, manifest: Path) -> None:
    """A run goes on with the settings it was started with: refuse a manifest that was given others since."""
    saved = checkpoint.state.get("settings")
    if saved is not None:
        now, before = flat(to_json(settings)), flat(to_json(from_json(saved)))
    else:  # a checkpoint of an earlier version: what its memory tells
        memory = checkpoint.memory
        now = {"capacity": settings.replay.capacity, "n_step": settings.replay.n_step}
        before = {"capacity": memory.capacity, "n_step": memory.n_step}
    other = [name for name in now if now[name] != before.get(name)]
    if other:
        edits = ", ".join(f"{name} {now[name]} (the run has {before.get(name)})" for name in other)
        raise PserError(
            f"a run keeps its settings, but {manifest} now says {edits}: restore it, or start a new run"
        )


def flat(groups: dict[str, Any]) -> dict[str, Any]:
    """Every setting by its own name, whatever group it lives in."""
    values: dict[str, Any] = {}
    for name, value in groups.items():
        values |= flat(value) if isinstance(value, dict) else {name: value}
    return values


def build_trainer(settings: TrainSettings, game: Game) -> Trainer:
    """The trainer of a run, on the device its settings name."""
    device = configure_torch(settings.run.device, settings.run.threads)
    try:
        return Trainer(settings, game, device)
    except MemoryError:
        raise PserError(
            f"no room in memory for a capacity of {settings.replay.capacity:,}: lower --capacity"
        ) from None


@contextlib.contextmanager
def _warnings_said(progress: Progress) -> Iterator[None]:
    """Show warnings as lines of the run's own, also if an error follows them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                progress.said(f"warning: {warning.message}")


def _run(folder: RunFolder, trainer: Trainer, checkpoint: Checkpoint | None, progress: Progress) -> None:
    frames = checkpoint.state["frames"] if checkpoint else 0
    try:
        run = _Run(folder, trainer, checkpoint, progress)
        try:
            folder.write_status("running", frames)
            for event in run.trainer.train():
                frames = event.frames
                run.listen(event)
        finally:
            run.close()
    except KeyboardInterrupt:
        folder.write_status("stopped", frames)
        progress.said(f"stopped at {frames:,} frames: continue with pser train --resume {folder.path}")
        raise
    except BaseException as error:
        told = explain_disk_error(error, folder.path) if isinstance(error, OSError) else error
        with contextlib.suppress(OSError):  # the disk that failed the run may fail the note about it
            folder.write_status("failed", frames, str(told) or type(told).__name__)
        if told is not error:
            raise told from error
        raise
    folder.write_status("finished", frames)


class _Run:
    """One process's part of a run: the trainer and everything that listens to it."""

    def __init__(
        self, folder: RunFolder, trainer: Trainer, checkpoint: Checkpoint | None, progress: Progress
    ) -> None:
        self.folder, self.trainer, self.progress = folder, trainer, progress
        self.settings = settings = trainer.settings
        self.best: Snapshot | None = None
        positions = {"train": 0, "eval": 0}
        frames = 0
        if checkpoint is not None:
            trainer.set_state(checkpoint.state["trainer"], checkpoint.memory)
            positions, frames = checkpoint.state["records"], checkpoint.state["frames"]
            best = checkpoint.state["best"]
            self.best = Snapshot(**best) if best else None
            if self.best:  # the file may be newer than the checkpoint
                write_snapshot(folder, "best", self.best)
        forget_inspections_after(folder.inspections, frames)
        self.train = JsonLines(folder.train, positions["train"])
        self.evaluations = JsonLines(folder.evaluations, positions["eval"])
        self.tensorboard = TensorBoard(folder.tensorboard, enabled=settings.run.tensorboard, frames=frames)

    def listen(self, event: Any) -> None:
        """Do what an event asks for."""
        match event:
            case IntervalLogged(row=row):
                self.train.append(row)
                self.tensorboard.add("train", row)
                self.progress.logged(row)
            case EvaluationDue(frames=frames):
                self._evaluate(frames)
            case InspectionDue(frames=frames):
                self._inspect(frames)
            case CheckpointDue(frames=frames):
                self._checkpoint(frames)
            case TrainingFinished(frames=frames):
                self.progress.said(f"finished: {frames:,} frames, records in {self.folder.path}")

    def _evaluate(self, frames: int) -> None:
        settings = self.settings.evaluation
        self.progress.busy("evaluating")
        with contextlib.closing(evaluation_game(self.settings)) as game:
            result = evaluate(
                self.trainer.agent,
                game,
                epsilon=settings.eval_epsilon,
                seed=derived_seed(self.settings.run.seed, "evaluation", frames),
                episodes=0 if settings.eval_frames else settings.eval_episodes,
                frames=settings.eval_frames,
            ).summary()
        is_best = (
            self.best is None
            or self.best.mean_return is None
            or result["mean_return"] > self.best.mean_return
        )
        if is_best:
            self.best = Snapshot(frames, result["mean_return"], self.trainer.agent.get_weights())
            write_snapshot(self.folder, "best", self.best)
        row = {"frames": frames, **result, "best": is_best}
        self.evaluations.append(row)
        self.tensorboard.add("eval", {key: value for key, value in row.items() if key != "best"})
        self.progress.evaluated(row)

    def _inspect(self, frames: int) -> None:
        self.progress.busy("inspecting the memory")
        trainer = self.trainer
        inspection = inspect_memory(trainer.memory, frames=frames, drawn=list(trainer.drawn))
        write_inspection(self.folder.inspections, inspection)

    def _checkpoint(self, frames: int) -> None:
        self.progress.busy("writing a checkpoint")
        state = {
            "frames": frames,
            "settings": to_json(self.settings),
            "trainer": self.trainer.get_state(),
            "records": {"train": self.train.sync(), "eval": self.evaluations.sync()},
            "best": self.best.to_state() if self.best else None,
        }
        write_checkpoint(self.folder.checkpoints, frames, state, self.trainer.memory)
        write_snapshot(self.folder, "last", Snapshot(frames, None, self.trainer.agent.get_weights()))
        self.folder.write_status("running", frames)

    def close(self) -> None:
        """Close the files."""
        self.train.close()
        self.evaluations.close()
        self.tensorboard.close()


def checkpoint_bytes(settings: TrainSettings, game: Game) -> int:
    """About what the two kept checkpoints and the one being written take on disk when the memory is full."""
    spec = game.observation
    if isinstance(spec, pser.Frames):
        item = int(np.prod(spec.shape))
    else:
        item = 2 * int(np.prod(observation_shape(spec))) * np.dtype(spec.dtype).itemsize
    steps = settings.run.budget_frames // game.frames_per_step
    return 3 * min(settings.replay.capacity, steps) * (item + 64)
