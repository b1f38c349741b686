"""RLlib: an episode buffer for its DQN and SAC (new API stack) whose priorities are exact.

RLlib hands over pieces of episodes; each episode is a stream of a `pser.ReplayMemory` while it goes on, so that decay
passes from piece to piece and n-step returns reach the very end. What RLlib samples are episodes of one transition, or,
with `ReadyColumns`, the columns of its train batch.
"""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.rllib.algorithms.sac import SACConfig as _SACConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils import force_list
from ray.rllib.utils.replay_buffers.episode_replay_buffer import EpisodeReplayBuffer
from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import PrioritizedEpisodeReplayBuffer

from pser.errors import PserError
from pser.integrations._rllib_rows import Drawn, ReadyColumns, Sampled
from pser.integrations._shared import require_prioritization, require_version
from pser.memory.batch import Batch
from pser.memory.replay import ReplayMemory
from pser.spec import Array

require_version("ray", "2.60", "3")

__all__ = ["BUFFER", "PSEREpisodeReplayBuffer", "ReadyColumns", "SACConfig"]

BUFFER = "pser.integrations.rllib.PSEREpisodeReplayBuffer"
"""What `replay_buffer_config["type"]` must say: RLlib takes no class, and looks for this ending."""


class PSEREpisodeReplayBuffer(PrioritizedEpisodeReplayBuffer):
    """A `pser.ReplayMemory` behind RLlib's interface; RLlib updates priorities of this base class alone."""

    def __init__(
        self,
        capacity: int = 10_000,
        *,
        prioritization: Any = None,
        n_step: int = 1,
        gamma: float = 0.99,
        streams: int = 256,
        seed: int | None = None,
        batch_size_B: int = 32,
        batch_length_T: int = 1,
        metrics_num_episodes_for_smoothing: int = 100,
        **defaults: Any,
    ) -> None:
        """An empty buffer; all of this is written in `replay_buffer_config`, beside `beta`.

        Args:
            capacity: transitions it holds.
            prioritization: pser.PSER, pser.PER or pser.Uniform. RLlib's own `alpha` has no meaning here.
            n_step: as in the algorithm's config.
            gamma: as in the algorithm's config.
            streams: episodes that may go on at the same time: environments of all runners.
            seed: of the memory's random generator.
            batch_size_B: transitions of a sample, unless it says how many.
            batch_length_T: 1; RLlib has no sequences of prioritized transitions either.
            metrics_num_episodes_for_smoothing: RLlib's.
            defaults: RLlib's settings of its own buffer, which it always passes on.
        """
        EpisodeReplayBuffer.__init__(  # not the parent's: its trees would take the memory twice
            self,
            capacity=capacity,
            batch_size_B=batch_size_B,
            batch_length_T=batch_length_T,
            metrics_num_episodes_for_smoothing=metrics_num_episodes_for_smoothing,
        )
        self._prioritization = require_prioritization(prioritization, "it in replay_buffer_config")
        self._n_step, self._gamma, self._streams, self._seed = n_step, gamma, streams, seed
        self.memory: ReplayMemory | None = None
        """Made with the first episode, whose arrays tell the shapes."""
        self._open: dict[str, tuple[int, int]] = {}
        """Episode that goes on → (its stream, its next time step), the longest untouched first."""
        self._sampled: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Transitions in memory."""
        return 0 if self.memory is None else len(self.memory)

    def get_num_timesteps(self, module_id: Any = None) -> int:
        """Transitions in memory."""
        return len(self)

    def get_num_episodes(self, module_id: Any = None) -> int:
        """Episodes that go on: the memory counts no others."""
        return len(self._open)

    def add(self, episodes: Any, weight: Any = None) -> None:
        """Take pieces of episodes; new transitions have the largest priority ever recorded."""
        for episode in force_list(episodes):
            if len(episode):
                self._add(episode)
            if episode.is_done:
                self._open.pop(episode.id_, None)

    def _add(self, episode: SingleAgentEpisode) -> None:
        steps = len(episode)
        observations = _stacked(episode.get_observations(slice(0, steps + 1)))
        actions = _stacked(episode.get_actions(slice(0, steps)))
        rewards = np.asarray(episode.get_rewards(slice(0, steps)), np.float64)
        if self.memory is None:
            self.memory = ReplayMemory(
                self.capacity,
                Array(observations.shape[1:], observations.dtype),
                Array(actions.shape[1:], actions.dtype),
                num_envs=self._streams,
                prioritization=self._prioritization,
                n_step=self._n_step,
                gamma=self._gamma,
                seed=self._seed,
                reward_dtype=np.float64,
            )
        stream = self._stream_of(self.memory, episode)
        terminated, truncated = np.zeros((2, steps), np.bool_)
        terminated[-1] = episode.is_terminated
        truncated[-1] = episode.is_truncated and not episode.is_terminated
        self.memory.add(
            observations[:-1],
            actions,
            rewards,
            observations[1:],
            terminated,
            truncated,
            stream=np.full(steps, stream),
        )
        self._open[episode.id_] = stream, episode.t_started + steps
        self._num_timesteps_added += steps
        self._num_timesteps = len(self.memory)

    def _stream_of(self, memory: ReplayMemory, episode: SingleAgentEpisode) -> int:
        """The stream that an episode goes on in; a piece that does not follow the last one begins a new sequence."""
        known = self._open.pop(episode.id_, None)
        if known is not None:
            stream, expected = known
            if episode.t_started != expected:
                memory.end_episodes([stream])
            return stream
        taken = {stream for stream, _ in self._open.values()}
        if len(taken) == self._streams:  # a runner was lost, and its episodes will not end
            stream, _ = self._open.pop(next(iter(self._open)))
            memory.end_episodes([stream])
            return stream
        return next(stream for stream in range(self._streams) if stream not in taken)

    def sample(
        self,
        num_items: int | None = None,
        *,
        batch_size_B: int | None = None,
        n_step: Any = None,
        beta: float | None = None,
        gamma: float | None = None,
        **_: Any,
    ) -> list[SingleAgentEpisode]:
        """Draw transitions by P(i), each as an episode of one step with its `weights` and `n_step`."""
        for name, asked, own in (("n_step", n_step, self._n_step), ("gamma", gamma, self._gamma)):
            if asked is not None and asked != own:
                raise PserError(
                    f"{name} must be the algorithm's, which is {asked}, got {own}: write it in replay_buffer_config"
                )
        if beta is None:
            raise PserError("RLlib gave no beta: write it in replay_buffer_config, 0.4 is usual")
        if self.memory is None:
            raise PserError("cannot sample from an empty buffer: add episodes first")
        batch = self.memory.sample(
            int(num_items or batch_size_B or self.batch_size_B), float(beta), copy=True
        )
        self._sampled = batch.ids
        self.sampled_timesteps += len(batch.ids)
        return Sampled(Drawn(batch, batch.reward.astype(np.float32), self._steps(batch)))

    def _steps(self, batch: Batch) -> NDArray[np.int64]:
        """m of each transition: RLlib discounts by γ^m itself, unless it terminated."""
        steps = np.full(len(batch.ids), self._n_step)
        if self._n_step > 1 and 0.0 < self._gamma < 1.0:
            going_on = batch.discount > 0.0
            steps[going_on] = np.rint(np.log(batch.discount[going_on]) / np.log(self._gamma))
        return steps

    def update_priorities(self, priorities: Any, module_id: Any = None) -> None:
        """Take the TD errors of the last sample, and decay them backward."""
        if self.memory is None or self._sampled is None:
            raise PserError("there is no sample to update: call sample first")
        if len(priorities) != len(self._sampled):
            raise PserError(
                f"there must be one TD error for each of {len(self._sampled)} transitions, got {len(priorities)}: "
                "use one learner"
            )
        self.memory.update_priorities(self._sampled, priorities)

    def get_state(self) -> dict[str, Any]:
        """All of it, to be pickled: RLlib's own checkpoints hold no buffer on the new API stack."""
        stream = io.BytesIO()
        if self.memory is not None:
            self.memory.save(stream)
        return {
            "memory": stream.getvalue(),
            "open": [[name, *place] for name, place in self._open.items()],
            "sampled": None if self._sampled is None else self._sampled.copy(),
            "_num_timesteps_added": self._num_timesteps_added,
            "sampled_timesteps": self.sampled_timesteps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on, bit for bit, from where `get_state` was called; settings of the memory are those it was saved with."""
        memory = ReplayMemory.load(io.BytesIO(state["memory"])) if state["memory"] else None
        if memory is not None:
            self._n_step, self._gamma, self._streams = memory.n_step, memory.gamma, memory.num_envs
            self.capacity, self._prioritization = memory.capacity, memory.prioritization
        self.memory = memory
        self._open = {name: (int(stream), int(at)) for name, stream, at in state["open"]}
        self._sampled = state["sampled"]
        self._num_timesteps_added = state["_num_timesteps_added"]
        self._num_timesteps = len(self)
        self.sampled_timesteps = state["sampled_timesteps"]


class SACConfig(_SACConfig):
    """RLlib's, but for its check of the buffer, which knows RLlib's own by name only."""

    replay_buffer_config: dict[str, Any]

    def validate(self) -> None:
        """Check all else."""
        given = self.replay_buffer_config
        if given.get("type") == BUFFER:
            self.replay_buffer_config = {**given, "type": "PrioritizedEpisodeReplayBuffer"}
        try:
            super().validate()
        finally:
            self.replay_buffer_config = given


def _stacked(values: Any) -> NDArray[Any]:
    """Steps of an episode as one array, whether RLlib has them as one already or as a list."""
    rows = np.asarray(values)
    if rows.dtype == object or isinstance(values, dict):
        raise PserError(
            "observations and actions must be arrays of one shape, got others: flatten them first"
        )
    return rows
