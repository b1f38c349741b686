"""The training loop of one process: one game, one memory, one agent."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pser
from pser.env.game import Game
from pser.learner.agent import make_agent
from pser.learner.course import Counters, Course
from pser.learner.events import Event
from pser.learner.own_network import NetworkFactory
from pser.learner.replay import Experience, MemoryReplay, build_replay
from pser.learner.seeds import derived_seed, generator
from pser.learner.settings import TrainSettings


class Trainer(Course):
    """Everything a run needs to go on: `train` advances it, `get_state` and `set_state` move it."""

    game: Game
    replay: MemoryReplay

    def __init__(
        self,
        settings: TrainSettings,
        game: Game,
        device: torch.device,
        network: NetworkFactory | None = None,
    ) -> None:
        """A run at its start; `network`, if given, makes the agent's networks instead of the one named."""
        super().__init__(settings, game)
        seed = settings.run.seed
        self.agent = make_agent(
            settings,
            observation_shape(game.observation),
            game.num_actions,
            seed=derived_seed(seed, "network"),
            device=device,
            network=network,
        )
        self.replay = build_replay(settings, game, self.agent)
        self.exploration = generator(seed, "exploration")
        self.observation = game.reset(derived_seed(seed, "game")).copy()

    def load_memory(self, path: Path) -> "pser.ReplayMemory":
        """The memory that a checkpoint holds; a damaged one is refused."""
        return pser.ReplayMemory.load(path)

    def _step_games(self) -> Iterator[Event]:
        """One step of every environment, into the memory."""
        action = self.agent.act(self.observation, self.epsilons(), self.exploration, training=True)
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
                yield self._count_episode(float(step.episode_return[env]), int(step.episode_length[env]))

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

    def _set_state(self, state: dict[str, Any], memory: "pser.ReplayMemory") -> None:
        self.agent.set_state(state["agent"])
        self.exploration.bit_generator.state = state["exploration"]
        self.counters = Counters(**state["counters"])
        self.interval.set_state(state["interval"])
        self.replay.set_state(state.get("replay", {}), memory)  # earlier checkpoints have none
        np.copyto(self.observation, self.game.set_state(state["game"]))
        if not self.game.exact_state:
            self.replay.end_episodes()  # the game starts afresh


def observation_shape(spec: "pser.Array | pser.Frames") -> tuple[int, ...]:
    """Shape of one observation as the network sees it."""
    if isinstance(spec, pser.Frames):
        return (spec.stack, *spec.shape)
    return tuple(spec.shape)
