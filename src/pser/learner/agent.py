"""The learner's seam: what the loop, evaluation and snapshots ask of an agent, whatever it learns with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

import pser
from pser.learner.registry import LEARNERS, load
from pser.learner.settings import TrainSettings

if TYPE_CHECKING:
    import torch

    from pser.learner.own_network import NetworkFactory

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Statistics:
    """What one update saw, as means over its batch, before the update."""

    loss: float
    """Of w·loss."""
    q: float
    """Of Q(s, a)."""
    td_abs: float
    """Of |δ|."""


@dataclass(frozen=True)
class Learned:
    """What one update leaves for others."""

    signal: Floats
    """What the memory is told about each transition of the batch."""
    statistics: Statistics | None
    """Numbers to watch, if they were asked for."""


class Agent(Protocol):
    """Acts, learns from batches, and can be saved."""

    num_actions: int

    def act(
        self,
        observation: NDArray[Any],
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        *,
        training: bool = False,
    ) -> Ints:
        """ε-greedy actions for a batch of observations; in training also with the agent's own exploration."""

    def learn(self, batch: "pser.Batch", *, measure: bool = True) -> Learned:
        """One update on a batch from the memory."""

    def update_target(self) -> None:
        """What was learned becomes what is learned towards."""

    def new_priorities(
        self,
        observation: NDArray[Any],
        action: Ints,
        reward: NDArray[np.float64],
        next_observation: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> Floats:
        """What the memory is told of new transitions (CurrentTD)."""

    def q_values(self, observation: NDArray[Any]) -> Floats:
        """Q(s, ·) as it is now."""

    def target_q_values(self, observation: NDArray[Any]) -> Floats:
        """Q(s, ·) as it is learned towards."""

    def get_weights(self) -> Floats:
        """A copy of all that acting needs: the content of a snapshot."""

    def set_weights(self, weights: Floats) -> None:
        """Act by the weights of a snapshot."""

    def noise_stream(self) -> NDArray[np.uint8]:
        """Where the random stream of a noisy network is; asked of those alone."""

    def set_noise_stream(self, state: object) -> None:
        """Continue that stream from there."""

    def get_state(self) -> dict[str, Any]:
        """All that learning needs, as NumPy arrays and JSON values: the content of a checkpoint."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state`."""


def make_agent(
    settings: TrainSettings,
    shape: tuple[int, ...],
    num_actions: int,
    *,
    seed: int,
    device: "torch.device",
    network: "NetworkFactory | None" = None,
) -> Agent:
    """The agent of a run; `network`, if given, makes its networks instead of the one the settings name."""
    made: Agent = load(LEARNERS[settings.agent.learner])(
        settings, shape, num_actions, seed=seed, device=device, network=network
    )
    return made
