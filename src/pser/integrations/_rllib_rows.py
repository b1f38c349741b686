"""What RLlib's algorithms sample: rows that are ready columns for its learner, or episodes once somebody looks.

RLlib's learner takes episodes apart again, into the columns they were made of. Where it shares a process with the
buffer (`num_learners=0`), a connector hands it the columns as they are; elsewhere each row becomes an episode of one
step.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer as Steps
from ray.rllib.utils.spaces.space_utils import BatchedNdArray

from pser.memory.batch import Batch

SAMPLES = count()


@dataclass(slots=True)
class Drawn:
    """A batch that is nobody else's, and what RLlib wants to know besides."""

    batch: Batch
    rewards: NDArray[np.float32]
    steps: NDArray[np.int64]
    """m of each transition."""
    number: int = field(default_factory=lambda: next(SAMPLES))
    """Of the samples of this process."""
    looked_into: bool = False
    """Whether a row became an episode, which others may have changed since."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """By the names that RLlib's losses read; what was cut off bootstraps, like what goes on."""
        return {
            Columns.OBS: self.batch.observation,
            Columns.NEXT_OBS: self.batch.next_observation,
            Columns.ACTIONS: self.batch.action,
            Columns.REWARDS: self.rewards,
            Columns.TERMINATEDS: self.batch.terminated,
            Columns.TRUNCATEDS: np.zeros(len(self.steps), np.bool_),
            "weights": self.batch.weights,
            "n_step": self.steps,
        }


ONE_STEP = SingleAgentEpisode(observations=[0, 0], actions=[0], rewards=[0.0], len_lookback_buffer=0)
"""What RLlib makes of a single step: to be copied, since making it takes several times as long."""


class Row(SingleAgentEpisode):
    """A transition of a sample: it knows its length, and becomes an episode of one step when looked into."""

    def __init__(self, drawn: Drawn, row: int) -> None:
        self._drawn, self._row = drawn, row
        self.t_started, self.t = 0, 1

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet."""
        if name not in SingleAgentEpisode.__slots__:
            raise AttributeError(name)
        drawn, batch, row = self._drawn, self._drawn.batch, self._row
        drawn.looked_into = True
        for slot in SingleAgentEpisode.__slots__:
            setattr(self, slot, getattr(ONE_STEP, slot))
        self.id_ = f"{drawn.number}_{row}"  # RLlib tells the rows of a train batch apart by it
        self.observations = Steps([batch.observation[row], batch.next_observation[row]])
        self.infos = Steps([{}, {}])
        self.actions = Steps([batch.action[row]])
        self.rewards = Steps([drawn.rewards[row]], space=ONE_STEP.rewards.space)
        self.is_terminated = bool(batch.terminated[row])
        self.extra_model_outputs = {
            "weights": Steps([float(batch.weights[row])]),
            "n_step": Steps([int(drawn.steps[row])]),
        }
        self._custom_data: dict[str, Any] = {}
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Elsewhere, on a remote learner or in a copy, it is an episode like any other."""
        return _plain_episode, ({name: getattr(self, name) for name in SingleAgentEpisode.__slots__},)


def _plain_episode(values: dict[str, Any]) -> SingleAgentEpisode:
    episode = SingleAgentEpisode.__new__(SingleAgentEpisode)
    for name, value in values.items():
        setattr(episode, name, value)
    return episode


class Sampled(list[SingleAgentEpisode]):
    """The rows of a sample, and its columns."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(Row(drawn, row) for row in range(len(drawn.steps)))
        self.drawn = drawn

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Elsewhere it is a list of episodes."""
        return list, (list(self),)


class ReadyColumns(ConnectorV2):
    """For `.learners(learner_connector=ReadyColumns)`: a sample's columns as they are, without a detour over episodes.

    RLlib's own connectors leave columns alone that are there already. With remote learners, recurrent modules, and
    after a connector that looked into the episodes, this one does nothing, and the episodes are used.
    """

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: dict[str, Any],
        episodes: Any,
        explore: bool | None = None,
        shared_data: dict[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Put the columns into the train batch."""
        if not isinstance(episodes, Sampled) or episodes.drawn.looked_into or rl_module.is_stateful():
            return batch
        for name, values in episodes.drawn.columns().items():
            batch[name] = {("pser",): [BatchedNdArray(values)]}
        for row in episodes:
            row.extra_model_outputs = {}  # RLlib asks each episode for more columns: there are no others
        return batch
