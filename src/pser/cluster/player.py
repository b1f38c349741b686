"""An actor: plays its environments by the weights it is given, and says how surprised the network was."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser.cluster.chunk import Chunk, Tape
from pser.learner.agent import Floats, Ints, make_agent
from pser.learner.device import configure_torch
from pser.learner.games import training_game
from pser.learner.loop import observation_shape
from pser.learner.seeds import derived_seed, generator
from pser.learner.settings import TrainSettings

Epsilon = float | npt.NDArray[np.float64]


class Report(NamedTuple):
    """What came of a chunk beside its steps."""

    episodes: list[tuple[float, int]]
    """Return and length of each game that ended."""
    pid: int
    """The process that played."""
    noise: npt.NDArray[np.uint8] | None
    """Where the stream of a noisy network is, if it was given."""


class Player:
    """E environments and a copy of the network."""

    def __init__(self, settings: TrainSettings, envs: int, serial: int, synchronous: bool) -> None:
        """`serial` is this player's number among all of the run, replaced ones included: its own randomness."""
        self.settings = settings = settings.override({"num_envs": envs})
        seed = settings.run.seed
        device = configure_torch("cpu", settings.run.threads)
        self.game = training_game(settings)
        own = (
            settings if synchronous else settings.override({"seed": derived_seed(seed, "noise", serial + 1)})
        )
        self.agent = make_agent(
            own, observation_shape(self.game.observation), self.game.num_actions, seed=0, device=device
        )
        self.exploration = generator(seed, "exploration", serial)
        self.observation = self.game.reset(derived_seed(seed, "game", serial)).copy()
        self._version = -1
        # Other signals need more than Q values, and a noisy network tells them by its means.
        replay = settings.replay
        self._at_hand = (
            replay.starts_with_td
            and replay.priority_signal == "td"
            and not settings.agent.noisy
            and not synchronous
        )

    def play(
        self,
        steps: int,
        epsilon: Epsilon,
        version: int,
        weights: Floats,
        noise: npt.NDArray[np.uint8] | None = None,
    ) -> tuple[Report, Chunk]:
        """So many steps of every environment, by the weights of this version.

        `noise` is where the random stream of a noisy network is to go on; without it the actor has one of its own.
        """
        if noise is not None:
            self.agent.set_noise_stream(noise)
        if version != self._version:
            self.agent.set_weights(weights.copy())  # what came through Ray is read-only
            self._version = version
        game = self.game
        tape = Tape(game.observation, steps, game.num_envs)
        values: list[Floats] = []
        episodes = []
        for t in range(steps):
            action = self._act(epsilon, values)
            step = game.step(action)
            reward = np.clip(step.reward, -1.0, 1.0) if self.settings.game.clip_rewards else step.reward
            tape.record(t, self.observation, action, reward, step)
            np.copyto(self.observation, step.observation)
            for env in np.flatnonzero(step.finished):
                episodes.append((float(step.episode_return[env]), int(step.episode_length[env])))
        noise = None if noise is None else self.agent.noise_stream()
        return Report(episodes, os.getpid(), noise), tape.chunk(self._td_errors(tape, values))

    def _act(self, epsilon: Epsilon, values: list[Floats]) -> Ints:
        """ε-greedy actions; the Q values are kept where priorities are made of them."""
        if not self._at_hand:
            return self.agent.act(self.observation, epsilon, self.exploration, training=True)
        q = self.agent.q_values(self.observation)
        values.append(q)
        action: Ints = q.argmax(1)
        explore = self.exploration.random(len(action)) < epsilon
        action[explore] = self.exploration.integers(self.agent.num_actions, size=np.count_nonzero(explore))
        return action

    def _td_errors(self, tape: Tape, values: list[Floats]) -> npt.NDArray[np.float32] | None:
        """What the memory is told of the steps (CurrentTD); None if it is to take the largest priority."""
        if not self.settings.replay.starts_with_td:
            return None
        if self._at_hand:
            q = np.stack([*values, self.agent.q_values(self.observation)])
            return td_errors_at_hand(tape, q, self.agent.q_values, self.settings.agent.gamma)
        shape, row = tape.action.shape, self.game.observation.row_shape
        return self.agent.new_priorities(
            tape.now[:-1].reshape(-1, *row),
            tape.action.reshape(-1),
            tape.reward.reshape(-1),
            tape.following.reshape(-1, *row),
            tape.terminated.reshape(-1),
        ).reshape(shape)

    def get_state(self) -> dict[str, Any]:
        """Where the games and the random actions are."""
        return {"exploration": self.exploration.bit_generator.state, "game": self.game.get_state()}

    def set_state(self, state: dict[str, Any]) -> bool:
        """Continue from `get_state`; whether the games go on exactly where they were."""
        self.exploration.bit_generator.state = state["exploration"]
        np.copyto(self.observation, self.game.set_state(state["game"]))
        return bool(self.game.exact_state)


def td_errors_at_hand(
    tape: Tape, q: Floats, q_values: Callable[[npt.NDArray[Any]], Floats], gamma: float
) -> npt.NDArray[np.float32]:
    """δ = r + γ·max Q(s′, ·) − Q(s, a) of every step, [T, E], from the Q values that actions were chosen by.

    `q` is [T + 1, E, actions]: of what was acted on, and of what will be. Only where an episode was cut is the network
    asked again, of its last observation (Horgan et al. 2018, Algorithm 1).
    """
    best = q[1:].max(2)
    cut = ~tape.goes_on & ~tape.terminated
    if cut.any():
        best[cut] = q_values(np.ascontiguousarray(tape.following[cut])).max(1)
    discount = np.where(tape.terminated, np.float32(0), np.float32(gamma))
    taken = np.take_along_axis(q[:-1], tape.action[..., None], 2)[..., 0]
    deltas: npt.NDArray[np.float32] = tape.reward.astype(np.float32) + discount * best - taken
    return deltas
