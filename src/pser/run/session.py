"""One process's part of a run: the trainer, and everything that listens to it."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from pser.errors import DamagedFileError, PserError, is_whole, require
from pser.learner.course import Course
from pser.learner.evaluation import evaluate
from pser.learner.events import (
    CheckpointDue,
    EvaluationDue,
    Event,
    InspectionDue,
    IntervalLogged,
    Remark,
    TrainingFinished,
    TrainingStopped,
)
from pser.learner.games import evaluation_game
from pser.learner.seeds import derived_seed
from pser.learner.settings_json import to_json
from pser.records.checkpoint import Checkpoint, CheckpointWriter
from pser.records.folder import RunFolder
from pser.records.inspection import forget_inspections_after, inspect_memory, write_inspection
from pser.records.jsonl import JsonLines
from pser.records.snapshot import Snapshot, snapshot_of, write_snapshot
from pser.records.trackers import Trackers
from pser.run.progress import Progress
from pser.run.stopping import StopSignals


class _EvaluationStopped(Exception):
    """An evaluation was left because the run is to stop."""


@contextlib.contextmanager
def _refusing_what_does_not_fit(checkpoint: Checkpoint) -> Iterator[None]:
    """A checkpoint is whole to the byte, and yet may have been written by other hands: say so in one line."""
    try:
        yield
    except PserError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DamagedFileError(
            f"{checkpoint.path} holds a state that does not fit this run ({what}): remove it, and the run "
            "goes on from the one before"
        ) from error


def check_position(value: Any) -> int:
    """A position in a record, as a checkpoint tells it."""
    require(
        is_whole(value) and value >= 0,
        "a position in a record is a count of bytes",
        value,
        "remove the checkpoint",
    )
    return int(value)


class Session:
    """One process's part of a run: the trainer and everything that listens to it."""

    def __init__(
        self,
        folder: RunFolder,
        trainer: Course,
        checkpoint: Checkpoint | None,
        progress: Progress,
        signals: StopSignals,
    ) -> None:
        self.folder, self.trainer, self.progress, self.signals = folder, trainer, progress, signals
        self.settings = settings = trainer.settings
        self.finished = False
        self.evaluation_owed = bool(checkpoint and checkpoint.state.get("evaluation_owed"))
        """Whether the evaluation of this moment was due and left: it is made first when the run goes on."""
        self.best: Snapshot | None = None
        positions = {"train": 0, "eval": 0}
        frames = 0
        if checkpoint is not None:
            with _refusing_what_does_not_fit(checkpoint):
                trainer.set_state(checkpoint.state["trainer"], checkpoint.memory)
                positions = {name: check_position(checkpoint.state["records"][name]) for name in positions}
                frames = checkpoint.state["frames"]
                if frames != trainer.frames:
                    raise ValueError(f"it was written at {frames} frames and holds a run at {trainer.frames}")
                best = checkpoint.state["best"]
                self.best = snapshot_of(best, checkpoint.path) if best else None
            if self.best:  # the file may be newer than the checkpoint
                write_snapshot(folder, "best", self.best)
        forget_inspections_after(folder.inspections, frames)
        self.train = JsonLines(folder.train, positions["train"])
        self.evaluations = JsonLines(folder.evaluations, positions["eval"])
        self.trackers = Trackers(folder, settings, frames)
        self.checkpoints = CheckpointWriter(folder.checkpoints, checkpoint)

    def carry_out(self, budget: int) -> Iterator[Event]:
        """Train until the budget is spent or the run is asked to stop, listening to each event on its way."""
        trainer = self.trainer
        warmup = self.settings.agent.warmup_steps * trainer.game.frames_per_step
        self.progress.watch(lambda: trainer.frames, warmup_frames=warmup, budget_frames=budget)
        if budget <= warmup:
            self.progress.said(
                f"note: all {budget:,} frames are warm-up, which takes {warmup:,}, so nothing is learned: "
                "raise --frames or lower --warmup-steps"
            )
        if self.evaluation_owed:
            self._evaluate(trainer.frames)
            if trainer.frames >= budget:
                self._checkpoint(trainer.frames)
        for event in trainer.train(budget):
            self._hear_of_checkpoint()
            self.listen(event)
            yield event

    def listen(self, event: Any) -> None:
        """Do what an event asks for."""
        match event:
            case IntervalLogged(row=row):
                self.train.append(row)
                self.trackers.add("train", row)
                self.progress.logged(row)
            case EvaluationDue(frames=frames):
                self._evaluate(frames)
            case InspectionDue(frames=frames):
                self._inspect(frames)
            case CheckpointDue(frames=frames):
                self._checkpoint(frames)
            case Remark(text=text):
                self.progress.said(text)
            case TrainingFinished():
                self._await_checkpoint()
                self.finished = not self.evaluation_owed
            case TrainingStopped(frames=frames):
                self.progress.said("stopping: writing a checkpoint first (Ctrl-C again stops at once)")
                self._checkpoint(frames)
                self._await_checkpoint()

    def _evaluate(self, frames: int) -> None:
        """Measure the agent as it is now; if the run is asked to stop meanwhile, the evaluation stays owed."""
        self.evaluation_owed = True
        try:
            result = self._measured(frames)
        except _EvaluationStopped:
            return
        self.evaluation_owed = False
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
        self.trackers.add("eval", {key: value for key, value in row.items() if key != "best"})
        self.progress.evaluated(row)

    def _measured(self, frames: int) -> dict[str, Any]:
        settings = self.settings.evaluation
        by_frames = bool(settings.eval_frames)
        total, unit = (settings.eval_frames, "frames") if by_frames else (settings.eval_episodes, "episodes")

        def on_episode() -> None:
            busy.done += 0 if by_frames else 1

        def on_step(played: int) -> None:
            if by_frames:
                busy.done = played
            if self.signals.caught is not None:
                raise _EvaluationStopped

        with (
            contextlib.closing(evaluation_game(self.settings)) as game,
            self.progress.busy("evaluating", total, unit) as busy,
        ):
            return evaluate(
                self.trainer.agent,
                game,
                epsilon=settings.eval_epsilon,
                seed=derived_seed(self.settings.run.seed, "evaluation", frames),
                episodes=0 if by_frames else settings.eval_episodes,
                frames=settings.eval_frames,
                on_episode=on_episode,
                on_step=on_step,
            ).summary()

    def _inspect(self, frames: int) -> None:
        trainer = self.trainer
        with self.progress.busy("inspecting the memory"):
            inspection = inspect_memory(trainer.memory, frames=frames, drawn=list(trainer.drawn))
            write_inspection(self.folder.inspections, inspection)

    def _checkpoint(self, frames: int) -> None:
        """Take a snapshot of the run; it is written while the training goes on."""
        self._await_checkpoint()
        weights = self.trainer.agent.get_weights()
        state = {
            "frames": frames,
            "evaluation_owed": self.evaluation_owed,
            "settings": to_json(self.settings),
            "trainer": self.trainer.get_state(),
            "records": {"train": self.train.position(), "eval": self.evaluations.position()},
            "best": self.best.to_state() if self.best else None,
        }

        def first() -> None:  # a checkpoint never speaks of rows that a power cut could take
            self.train.sync()
            self.evaluations.sync()

        def then() -> None:
            write_snapshot(self.folder, "last", Snapshot(frames, None, weights))

        self.checkpoints.write(frames, state, self.trainer.memory, first=first, then=then)

    def _await_checkpoint(self) -> None:
        if self.checkpoints.is_writing():
            with self.progress.busy("writing a checkpoint"):
                self.checkpoints.wait()
        self._hear_of_checkpoint()

    def _hear_of_checkpoint(self) -> None:
        """If one was completed, say so; if it failed, so does the run."""
        frames = self.checkpoints.completed()
        if frames is not None:
            self.folder.write_status("running", frames)

    def close(self) -> None:
        """Close the files, once a checkpoint under way is complete, unless the run is to stop at once."""
        if not isinstance(sys.exception(), KeyboardInterrupt):
            with contextlib.suppress(Exception):  # what is raised already matters more
                self.checkpoints.wait()
        self.train.close()
        self.evaluations.close()
        self.trackers.close()
