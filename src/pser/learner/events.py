"""What the training loop reports; logging, evaluation, checkpoints and the display listen."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EpisodeFinished:
    """A game ended."""

    frames: int
    episode_return: float
    episode_length: int


@dataclass(frozen=True)
class IntervalLogged:
    """A logging interval ended; `row` is its line of train.jsonl."""

    frames: int
    row: dict[str, Any]


@dataclass(frozen=True)
class EvaluationDue:
    """It is time to evaluate the agent as it is now."""

    frames: int


@dataclass(frozen=True)
class InspectionDue:
    """It is time to note what the memory holds and which batches it gave last."""

    frames: int


@dataclass(frozen=True)
class CheckpointDue:
    """The state may be saved now: every other event of this step has been reported."""

    frames: int


@dataclass(frozen=True)
class Remark:
    """Something happened that whoever watches should know, and that training goes on after."""

    frames: int
    text: str


@dataclass(frozen=True)
class TrainingFinished:
    """The budget is spent."""

    frames: int


@dataclass(frozen=True)
class TrainingStopped:
    """The loop was asked to stop between two steps; the state may be saved now."""

    frames: int


Event = (
    EpisodeFinished
    | IntervalLogged
    | EvaluationDue
    | InspectionDue
    | CheckpointDue
    | Remark
    | TrainingFinished
    | TrainingStopped
)
