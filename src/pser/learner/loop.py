"""The training loop: a generator of events over one game, one memory and one agent."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import pser
from pser.env.game import Game
from pser.errors import PserError
from pser.learner.agent import make_agent
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
from pser.learner.own_network import NetworkFactory
from pser.learner.replay import Experience, build_replay
from pser.learner.seeds import derived_seed, generator
from pser.learner.settings import TrainSettings

DRAWN_BATCHES = 64
"""The last batches an inspection of the memory shows; those before a resume are not among them."""


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


class Trainer:
    """Everything a run needs to go on: `train` advances it, `get_state` and `set_state` move it."""

    def __init__(
        self,
        settings: TrainSettings,
        game: Game,
        device: torch.device,
        network: NetworkFactory | None = None,
    ) -> None:
        """A run at its start; `network`, if given, makes the agent's networks instead of the one named."""
        seed = settings.run.seed
        self.settings, self.game = settings, game
        self.agent = make_agent(
            settings,
            observation_shape(game.observation),
            game.num_actions,
            seed=derived_seed(seed, "network"),
            device=device,
            network=network,
        )
        self.replay = build_replay(settings, game, self.agent)
        exploration, replay = settings.exploration, settings.replay
        self._epsilon = pser.Anneal(
            start=exploration.epsilon_start,
            end=exploration.epsilon_end,
            steps=exploration.epsilon_decay_steps,
        )
        self._beta = pser.Anneal(start=replay.beta, end=replay.beta_end, steps=settings.run.budget_frames)
        self.exploration = generator(seed, "exploration")
        self.counters = Counters()
        self.stop_requested = False
        self.interval = Interval()
        self.drawn: deque[tuple[NDArray[np.int64], NDArray[np.floating[Any]]]] = deque(maxlen=DRAWN_BATCHES)
        self.observation = game.reset(derived_seed(seed, "game")).copy()

    @property
    def memory(self) -> "pser.ReplayMemory":
        """What is kept to learn from."""
        return self.replay.memory

    @property
    def frames(self) -> int:
        """Frames of the game played so far, over all environments."""
        return self.counters.steps * self.game.frames_per_step

    def epsilon(self) -> float:
        """ε now: constant until learning starts, then linear (Mnih et al. 2015, Extended Data Table 1)."""
        if self.settings.agent.noisy and self.counters.steps >= self.settings.agent.warmup_steps:
            return 0.0  # the network explores by its noise
        return self._epsilon(self.counters.steps - self.settings.agent.warmup_steps)

    def _epsilons(self) -> Any:
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

    def _step_games(self) -> Iterator[Event]:
        """One step of every environment, into the memory."""
        action = self.agent.act(self.observation, self._epsilons(), self.exploration, training=True)
        step = self.game.step(action)
        reward = np.clip(step.reward, -1.0, 1.0) if self.settings.game.clip_rewards else step.reward
        self.replay.add(
            Experience(
                self.observation, action, reward, step.next_observation, step.terminated, step.truncated
            )
        )
        np.copyto(self.observation, step.observation)  # the game may reuse its arrays at the next step
        self.counters.steps += self.game.num_envs
        if step.finished.any():
            for env in np.flatnonzero(step.finished):
                episode_return, length = float(step.episode_return[env]), int(step.episode_length[env])
                self.counters.episodes += 1
                self.interval.add_episode(episode_return, length)
                yield EpisodeFinished(self.frames, episode_return, length)

    def _due(self, period_steps: int) -> int:
        """How many multiples of the period, after the warmup, the last step of the games passed."""
        steps, before = self.counters.steps, self.counters.steps - self.game.num_envs
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

    def get_state(self) -> dict[str, Any]:
        """All but the memory, which saves itself: JSON values and NumPy arrays."""
        return {
            "agent": self.agent.get_state(),
            "replay": self.replay.get_state(),
            "exploration": self.exploration.bit_generator.state,
            "counters": asdict(self.counters),
            "interval": self.interval.get_state(),
            "game": self.game.get_state(),
        }

    def set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
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

    def _set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        self.agent.set_state(state["agent"])
        self.exploration.bit_generator.state = state["exploration"]
        self.counters = Counters(**state["counters"])
        self.interval.set_state(state["interval"])
        self.replay.set_state(state.get("replay", {}), memory)  # earlier checkpoints have none
        np.copyto(self.observation, self.game.set_state(state["game"]))
        if not self.game.exact_state:
            self.memory.end_episodes()  # the game starts afresh: no transition, no decay across the gap


def _passed(now: int, last: int, period: int) -> bool:
    """Whether a multiple of the period lies in (last, now]."""
    return now // period > last // period


def observation_shape(spec: "pser.Array | pser.Frames") -> tuple[int, ...]:
    """Shape of one observation as the network sees it."""
    if isinstance(spec, pser.Frames):
        return (spec.stack, *spec.shape)
    return tuple(spec.shape)
