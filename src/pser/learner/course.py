"""A run's way through its budget, whoever plays its steps: a generator of events."""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import pser
from pser.env.game import GameFacts
from pser.errors import PserError
from pser.learner.agent import Agent, Floats
from pser.learner.events import (
    CheckpointDue,
    EpisodeFinished,
    EvaluationDue,
    Event,
    InspectionDue,
    IntervalLogged,
    TrainingFinished,
    TrainingStopped,
)
from pser.learner.interval import Interval
from pser.learner.settings import TrainSettings

DRAWN_BATCHES = 64
"""The last batches an inspection of the memory shows; those before a resume are not among them."""


class Replay(Protocol):
    """What a run learns from."""

    @property
    def memory(self) -> Any:
        """What a checkpoint saves beside the state."""

    def draw(self, batch_size: int, beta: float) -> "pser.Batch":
        """A batch to learn from."""

    def learned(self, batch: "pser.Batch", signal: Floats) -> None:
        """What was learned from each transition of the batch."""

    def stats(self) -> dict[str, float]:
        """Numbers to watch while training."""


@dataclass
class Counters:
    """How far the run is."""

    steps: int = 0
    """Decisions taken, over all environments."""
    updates: int = 0
    """Updates of the online network."""
    episodes: int = 0
    """Games finished."""
    logged_frames: int = 0
    """Frames at the last logging interval."""
    evaluated_frames: int = 0
    """Frames at the last evaluation."""
    checkpoint_frames: int = 0
    """Frames at the last checkpoint."""
    inspected_frames: int = 0
    """Frames at the last inspection of the memory."""


class Course(ABC):
    """Counters, schedules and events of a run; `train` advances it, `get_state` and `set_state` move it."""

    agent: Agent
    replay: Replay

    def __init__(self, settings: TrainSettings, game: GameFacts) -> None:
        self.settings, self.game = settings, game
        exploration, replay = settings.exploration, settings.replay
        self._epsilon = pser.Anneal(
            start=exploration.epsilon_start,
            end=exploration.epsilon_end,
            steps=exploration.epsilon_decay_steps,
        )
        self._beta = pser.Anneal(start=replay.beta, end=replay.beta_end, steps=settings.run.budget_frames)
        self.counters = Counters()
        self.stop_requested = False
        self.interval = Interval()
        self.until_frames = settings.run.budget_frames
        """Where `train` is going."""
        self.last_steps = game.num_envs
        """Steps that the last step of the games took, over all environments."""
        self.drawn: deque[tuple[NDArray[np.int64], NDArray[np.floating[Any]]]] = deque(maxlen=DRAWN_BATCHES)

    @property
    def memory(self) -> Any:
        """What is kept to learn from."""
        return self.replay.memory

    @abstractmethod
    def load_memory(self, path: Path) -> Any:
        """The memory that a checkpoint holds; a damaged one is refused."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """All but the memory, which saves itself: JSON values and NumPy arrays."""

    def set_state(self, state: dict[str, Any], memory: Any) -> None:
        """Continue from `get_state` and the memory saved with it; a state that does not fit is refused."""
        try:
            self._set_state(state, memory)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            if isinstance(error, PserError):
                raise
            raise PserError(
                f"a saved run must hold all its parts, but this one's do not fit ({type(error).__name__}: {error}): "
                "resume from another checkpoint"
            ) from None

    @abstractmethod
    def _set_state(self, state: dict[str, Any], memory: Any) -> None: ...

    @abstractmethod
    def _step_games(self) -> Iterator[Event]:
        """One step of every environment, into the memory."""

    @property
    def frames(self) -> int:
        """Frames of the game played so far, over all environments."""
        return self.counters.steps * self.game.frames_per_step

    def epsilon(self) -> float:
        """ε now: constant until learning starts, then linear (Mnih et al. 2015, Extended Data Table 1)."""
        if self.settings.agent.noisy and self.counters.steps >= self.settings.agent.warmup_steps:
            return 0.0  # the network explores by its noise
        return self._epsilon(self.counters.steps - self.settings.agent.warmup_steps)

    def epsilons(self) -> Any:
        """ε of every environment: one for all, or ε^(1 + spread·i/(N−1)) (Horgan et al. 2018, Section 4.1)."""
        epsilon, spread = self.epsilon(), self.settings.exploration.epsilon_spread
        if not spread:
            return epsilon
        envs = self.game.num_envs
        return epsilon ** (1.0 + spread * np.arange(envs) / max(envs - 1, 1))

    def beta(self) -> float:
        """β now: linear over the run (Schaul et al. 2016, Section 3.4)."""
        return self._beta(self.frames)

    def train(self, until_frames: int | None = None) -> Iterator[Event]:
        """Play and learn until the budget (or `until_frames`) is spent, reporting what happens.

        Setting `stop_requested`, from any thread, ends the loop after the step under way; it can be continued.
        """
        budget = self.settings.run.budget_frames if until_frames is None else until_frames
        self.until_frames = budget
        self.interval.restart_clock(time.perf_counter())
        while self.frames < budget:
            if self.stop_requested:
                self.interval.stop_clock(time.perf_counter())
                yield TrainingStopped(self.frames)
                return
            yield from self._step_games()
            for _ in range(self._due(self.settings.agent.update_period_steps)):
                self._update()
            if self._due(self.settings.agent.target_period_steps):
                self.agent.update_target()
            yield from self._due_events(finished=self.frames >= budget)
        yield TrainingFinished(self.frames)

    def _count_episode(self, episode_return: float, length: int) -> EpisodeFinished:
        """A game ended."""
        self.counters.episodes += 1
        self.interval.add_episode(episode_return, length)
        return EpisodeFinished(self.frames, episode_return, length)

    def _due(self, period_steps: int) -> int:
        """How many multiples of the period, after the warmup, the last step of the games passed."""
        steps, before = self.counters.steps, self.counters.steps - self.last_steps
        if steps <= self.settings.agent.warmup_steps:
            return 0
        return steps // period_steps - max(before, self.settings.agent.warmup_steps) // period_steps

    def _update(self) -> None:
        """One update of the network, and of the priorities of what it learned from."""
        batch = self.replay.draw(self.settings.agent.batch_size, self.beta())
        learned = self.agent.learn(batch, measure=self.interval.measures_next)
        self.replay.learned(batch, learned.signal)
        if self.settings.run.inspect_period_frames:
            self.drawn.append((batch.ids.copy(), learned.signal.copy()))
        self.counters.updates += 1
        self.interval.add_update(learned.statistics)

    def _due_events(self, *, finished: bool) -> Iterator[Event]:
        """Log, evaluate, save, in this order: a checkpoint holds all that the step reported."""
        run, counters, frames = self.settings.run, self.counters, self.frames
        if _passed(frames, counters.logged_frames, run.log_period_frames) or finished:
            row = self._log_row()
            counters.logged_frames = frames
            yield IntervalLogged(frames, row)
        period = self.settings.evaluation.eval_period_frames
        if period and (_passed(frames, counters.evaluated_frames, period) or finished):
            counters.evaluated_frames = frames
            yield from self._off_the_clock(EvaluationDue(frames))
        period = run.inspect_period_frames
        if period and (_passed(frames, counters.inspected_frames, period) or finished):
            counters.inspected_frames = frames
            yield from self._off_the_clock(InspectionDue(frames))
        period = run.checkpoint_period_frames
        if (period and _passed(frames, counters.checkpoint_frames, period)) or finished:
            counters.checkpoint_frames = frames
            yield from self._off_the_clock(CheckpointDue(frames))

    def _off_the_clock(self, event: Event) -> Iterator[Event]:
        """Report an event whose handling is not training: its time is not counted in frames per second."""
        self.interval.stop_clock(time.perf_counter())
        yield event
        self.interval.restart_clock(time.perf_counter())

    def _log_row(self) -> dict[str, Any]:
        counters = self.counters
        row = {
            "frames": self.frames,
            "steps": counters.steps,
            "updates": counters.updates,
            "episodes": counters.episodes,
            "epsilon": self.epsilon(),
            "beta": self.beta(),
        }
        row |= self.interval.close(time.perf_counter(), self.frames - counters.logged_frames)
        return row | {"memory": self.replay.stats()}


def _passed(now: int, last: int, period: int) -> bool:
    """Whether a multiple of the period lies in (last, now]."""
    return now // period > last // period
