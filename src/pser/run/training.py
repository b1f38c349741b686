"""Running a training with its records: the listeners of the training loop, put together."""

import contextlib
import warnings
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import pser
from pser.env.game import Game, GameFacts
from pser.errors import PserError
from pser.files.atomic import explain_disk_error, require_space
from pser.learner.course import Course
from pser.learner.device import configure_torch
from pser.learner.games import evaluation_game, training_game
from pser.learner.loop import Trainer, observation_shape
from pser.learner.settings import TrainSettings
from pser.records.checkpoint import Checkpoint, read_newest_checkpoint
from pser.records.edits import refuse_edited
from pser.records.folder import RunFolder
from pser.records.jsonl import newest_frames
from pser.records.manifest import budget_of, build_manifest, read_manifest, settings_of, write_manifest
from pser.records.snapshot import snapshot_path
from pser.records.trackers import require_tracker
from pser.records.trust import refuse_imports
from pser.run.progress import Progress
from pser.run.session import Session
from pser.run.stopping import StopSignals


class Engine(Protocol):
    """Who carries a run out."""

    def manifest(self) -> dict[str, Any]:
        """What the manifest says of it beside the settings; a run goes on with the engine it was started with."""
        ...

    def open(self, settings: TrainSettings) -> AbstractContextManager[Course]:
        """The trainer of a run, and all that it needs as long as the context lasts."""
        ...


class InProcess:
    """This process plays and learns."""

    def manifest(self) -> dict[str, Any]:
        """Nothing: it goes without saying."""
        return {}

    @contextlib.contextmanager
    def open(self, settings: TrainSettings) -> Iterator[Course]:
        """The game, and a trainer that plays it."""
        with contextlib.closing(training_game(settings)) as game:
            # one spelling, whatever case was typed
            yield build_trainer(settings.override({"env": game.name}), game)


def start_run(
    settings: TrainSettings,
    preset: str,
    path: Path,
    progress: Progress,
    *,
    command: str | None = None,
    engine: Engine | None = None,
) -> None:
    """Train a new agent; all that the run leaves behind goes into `path`, which must be new or empty.

    Whatever can be refused is refused before anything is written: a folder once taken keeps its settings.
    """
    folder, engine = RunFolder(path), engine or InProcess()
    with engine.open(settings) as trainer:
        settings = trainer.settings
        if settings.evaluation.eval_period_frames:
            evaluation_game(settings).close()
        require_tracker(settings.run.track)
        manifest = build_manifest(settings, preset, command) | engine.manifest()
        folder.create()
        require_space(path, checkpoint_bytes(settings, trainer.game), "three checkpoints of this run")
        with folder.locked():
            write_manifest(folder.manifest, manifest)
            _run(folder, trainer, None, progress, settings.run.budget_frames)


def resume_run(
    path: Path,
    progress: Progress,
    *,
    trusted: Collection[str] = (),
    extend_frames: int = 0,
    engine: Engine | None = None,
) -> None:
    """Continue a run from its newest whole checkpoint; a finished run is left alone unless it is extended.

    `trusted`: modules that the run's manifest may ask to import. `engine`: the one the run was started with.
    """
    folder, engine = RunFolder(path), engine or InProcess()
    manifest = read_manifest(folder.manifest)
    settings = settings_of(manifest)
    refuse_imports(settings, folder.manifest, trusted)
    budget = budget_of(manifest)
    status = folder.read_status()
    if status and status["state"] == "finished" and not extend_frames:
        progress.ended(f"{path} is finished: {status['frames']:,} frames (--extend FRAMES goes on)")
        return
    if manifest.get("engine") != engine.manifest().get("engine"):
        raise PserError(
            f"{path} was started with another engine: continue it with pser train --resume {path}"
        )
    with folder.locked(), engine.open(settings) as trainer:
        with _warnings_said(progress):
            checkpoint = read_newest_checkpoint(folder.checkpoints, trainer.load_memory)
        if checkpoint:
            refuse_edited(settings, checkpoint, folder.manifest)
        else:
            _refuse_lost_checkpoints(folder, settings)
        where = (
            f"at {checkpoint.state['frames']:,} frames" if checkpoint else "from the start: no checkpoint yet"
        )
        recorded = newest_frames(folder.train)
        again = recorded - (checkpoint.state["frames"] if checkpoint else 0)
        repeated = f"; {again:,} frames since then are played again" if again > 0 else ""
        progress.said(f"resuming {path} {where}{repeated}")
        resumed = {"frames": checkpoint.state["frames"] if checkpoint else 0, "recorded_frames": recorded}
        noted: dict[str, Any] = {"resumed": [*manifest.get("resumed", []), resumed]}
        if extend_frames:
            budget += extend_frames
            noted["extended_to_frames"] = budget
        write_manifest(folder.manifest, manifest | noted)
        _run(folder, trainer, checkpoint, progress, budget)


def _refuse_lost_checkpoints(folder: RunFolder, settings: TrainSettings) -> None:
    """Only a run that never had a checkpoint starts anew: its records would be cut back to nothing."""
    recorded, period = newest_frames(folder.train), settings.run.checkpoint_period_frames
    had_one = (
        (folder.read_status() or {}).get("state") == "finished"
        or snapshot_path(folder, "last").exists()
        or 0 < 2 * period < recorded  # the second checkpoint waits for the first
    )
    if had_one:
        raise PserError(
            f"a run goes on from a checkpoint, and {folder.checkpoints} holds none although the run was at "
            f"{recorded:,} frames: put its checkpoints back, or start a new run in another folder"
        )


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


def _run(
    folder: RunFolder, trainer: Course, checkpoint: Checkpoint | None, progress: Progress, budget: int
) -> None:
    """Train until the budget is spent or a signal asks to stop; the status never says running afterwards."""

    def ask() -> None:
        trainer.stop_requested = True

    with StopSignals(ask) as signals:
        frames = checkpoint.state["frames"] if checkpoint else 0
        again = f"continue with pser train --resume {folder.path}"
        try:
            run = Session(folder, trainer, checkpoint, progress, signals)
            try:
                folder.write_status("running", frames)
                for event in run.carry_out(budget):
                    frames = event.frames
            finally:
                signals.hold()
                run.close()
        except KeyboardInterrupt:
            folder.write_status("stopped", frames)
            progress.ended(f"stopped at once at {frames:,} frames, without a checkpoint: {again}")
            raise
        except BaseException as error:
            signals.hold()
            told = explain_disk_error(error, folder.path) if isinstance(error, OSError) else error
            with contextlib.suppress(OSError):  # the disk that failed the run may fail the note about it
                folder.write_status("failed", frames, str(told) or type(told).__name__)
            if told is not error:
                raise told from error
            raise
        folder.write_status("finished" if run.finished else "stopped", frames)
        if run.finished:
            progress.ended(f"finished: {frames:,} frames, records in {folder.path}")
        else:
            progress.ended(f"stopped at {frames:,} frames, checkpoint written: {again}")
    if not run.finished:
        signals.end_process()


def checkpoint_bytes(settings: TrainSettings, game: GameFacts) -> int:
    """About what the two kept checkpoints and the one being written take on disk when the memory is full."""
    spec = game.observation
    if isinstance(spec, pser.Frames):
        item = int(np.prod(spec.shape))
    else:
        item = 2 * int(np.prod(observation_shape(spec))) * np.dtype(spec.dtype).itemsize
    steps = settings.run.budget_frames // game.frames_per_step
    return 3 * min(settings.replay.capacity, steps) * (item + 64)
