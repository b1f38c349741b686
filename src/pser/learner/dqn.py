"""DQN (Mnih et al. 2015) with importance-sampling weights: acting, learning, and the equations in between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import pser
from pser.errors import PserError
from pser.learner.flat import FlatParameters
from pser.learner.networks import NETWORK_OF_FAMILY, build_network
from pser.learner.rmsprop import RMSProp
from pser.learner.settings import OptimizerSettings, TrainSettings

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def bootstrap_value(q_target: Floats, q_online: Floats | None) -> Floats:
    """max_a Q⁻(s', a), or Q⁻(s', argmax_a Q(s', a)) if Q is given (van Hasselt et al. 2016, Eq. 4)."""
    if q_online is None:
        best: Floats = q_target.max(1)
        return best
    return taken(q_target, q_online.argmax(1))


def taken(q: Floats, action: Ints) -> Floats:
    """Q(s, a) of the action taken, from Q(s, ·)."""
    values: Floats = q[np.arange(len(action)), action]
    return values


def td_errors(q_taken: Floats, reward: Floats, discount: Floats, value_next: Floats) -> Floats:
    """δ = r + γ^m·V(s') − Q(s, a), the discount 0 where the episode terminated (Mnih et al. 2015, Eq. 2)."""
    return reward + discount * value_next - q_taken


def huber(delta: Floats) -> Floats:
    """δ²/2 for |δ| ≤ 1, |δ| − 1/2 beyond: c·(|δ| − c/2) with c = min(|δ|, 1)."""
    size = np.abs(delta)
    inner = np.minimum(size, np.float32(1))
    return inner * (size - np.float32(0.5) * inner)


def priority_signal(kind: str, delta: Floats) -> Floats:
    """What the memory is told of δ: δ itself, or a function of it.

    sqrt_huber: √(Huber(δ) + 1e-10), the authors' code. huber: the loss, about δ²/2, which sharpens small errors.
    clipped: max(|δ|, 1) (LAP, Fujimoto et al. 2020). none: 0, so that only η is left: a rota by replay count.
    """
    if kind == "td":
        return delta
    if kind == "huber":
        return huber(delta)
    root: Floats = np.sqrt(huber(delta) + np.float32(1e-10))
    clipped: Floats = np.maximum(np.abs(delta), np.float32(1))
    return {"sqrt_huber": root, "clipped": clipped, "none": np.zeros_like(delta)}[kind]


def q_gradient(shape: tuple[int, ...], action: Ints, delta: Floats, weights: Floats) -> Floats:
    """∂/∂Q(s, ·) of mean(w·Huber(δ)): −w·clip(δ, −1, 1)/B at the action taken, 0 elsewhere."""
    gradient = np.zeros(shape, np.float32)
    gradient[np.arange(len(action)), action] = weights * np.clip(delta, -1, 1) / np.float32(-len(delta))
    return gradient


@dataclass(frozen=True)
class Learned:
    """What one update saw."""

    loss: float
    """mean(w·Huber(δ)) over the batch."""
    q_mean: float
    """Mean of Q(s, a) over the batch, before the update."""
    td_abs_mean: float
    """Mean of |δ| over the batch, before the update."""
    priority_signal: Floats
    """What the memory is told about each transition of the batch."""


class DQN:
    """An online and a target network, and the optimizer between them."""

    def __init__(
        self,
        settings: TrainSettings,
        shape: tuple[int, ...],
        num_actions: int,
        *,
        seed: int,
        device: torch.device,
    ) -> None:
        agent = settings.agent
        kind = NETWORK_OF_FAMILY[settings.game.family] if agent.network == "auto" else agent.network

        def network() -> Any:
            return build_network(
                kind, shape, num_actions, hidden=agent.hidden, dueling=agent.dueling, seed=seed
            )

        self.agent, self.replay, self.device = agent, settings.replay, device
        self.num_actions, self.on_cpu = num_actions, device.type == "cpu"
        self.online, self.target = network(), network()
        self.online_flat = FlatParameters(self.online, device)
        self.target_flat = FlatParameters(self.target, device)
        self.target.requires_grad_(False)
        self.optimizer = build_optimizer(settings.optimizer, self.online_flat)

    def act(self, observation: NDArray[Any], epsilon: float, rng: np.random.Generator) -> Ints:
        """ε-greedy actions for a batch of observations; the network is asked only if an action is greedy."""
        explore = rng.random(len(observation)) < epsilon
        if explore.all():
            return rng.integers(self.num_actions, size=len(observation))
        action: Ints = self.q_values(observation).argmax(1)
        if explore.any():
            action[explore] = rng.integers(self.num_actions, size=np.count_nonzero(explore))
        return action

    def q_values(self, observation: NDArray[Any]) -> Floats:
        """Q(s, ·) by the online network."""
        with torch.inference_mode():
            return _array(self.online.forward(self._tensor(observation)))

    def new_td_errors(
        self,
        observation: NDArray[Any],
        action: Ints,
        reward: NDArray[np.float64],
        next_observation: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> Floats:
        """CurrentTD: the priority signal of new transitions, over one step, all by the online network."""
        q, q_next = np.split(self.q_values(np.concatenate([observation, next_observation])), 2)
        discount = np.where(terminated, np.float32(0), np.float32(self.agent.gamma))
        value_next = bootstrap_value(q_next, None)
        return self._signal(td_errors(taken(q, action), reward.astype(np.float32), discount, value_next))

    def learn(self, batch: "pser.Batch") -> Learned:
        """One update of the online network on a batch from the memory."""
        with torch.inference_mode():
            q, saved = self.online.forward_saving(self._tensor(batch.observation))  # (batch, actions)
            next_observation = self._tensor(batch.next_observation)
            q_next = _array(self.online.forward(next_observation)) if self.agent.double_q else None
            value_next = bootstrap_value(_array(self.target.forward(next_observation)), q_next)
            q_taken = taken(_array(q), batch.action)
            delta = td_errors(q_taken, batch.reward, batch.discount, value_next)
            gradient = q_gradient(q.shape, batch.action, delta, batch.weights)
            self.online.backward(saved, self._tensor(gradient))
        if self.agent.max_grad_norm:
            self.online_flat.clip_gradients(self.agent.max_grad_norm)
        self.optimizer.step()
        return Learned(
            loss=float((batch.weights * huber(delta)).mean()),
            q_mean=float(q_taken.mean()),
            td_abs_mean=float(np.abs(delta).mean()),
            priority_signal=self._signal(delta),
        )

    def update_target(self) -> None:
        """Copy the online network into the target network."""
        self.target_flat.copy_from(self.online_flat)

    def _signal(self, delta: Floats) -> Floats:
        """What becomes the priority."""
        return priority_signal(self.replay.priority_signal, delta)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """The array as a tensor on the device; on the CPU without a copy."""
        tensor = torch.from_numpy(array)
        return tensor if self.on_cpu else tensor.to(self.device)

    def get_weights(self) -> NDArray[np.float32]:
        """A copy of the online network's parameters."""
        return self.online_flat.values.detach().cpu().numpy().copy()

    def set_weights(self, weights: NDArray[np.float32]) -> None:
        """Set the online network's parameters."""
        expected = tuple(self.online_flat.values.shape)
        if weights.shape != expected:
            raise PserError(
                f"saved weights must fit the network of their run's settings ({expected[0]:,} numbers), "
                f"got {weights.size:,}: restore the manifest that belongs to them"
            )
        with torch.no_grad():
            self.online_flat.values.copy_(torch.from_numpy(weights))

    def get_state(self) -> dict[str, Any]:
        """Networks and optimizer as NumPy arrays."""
        optimizer = self.optimizer.state.get(self.online_flat.values, {})
        return {
            "online": self.get_weights(),
            "target": self.target_flat.values.detach().cpu().numpy().copy(),
            "optimizer": {name: value.detach().cpu().numpy().copy() for name, value in optimizer.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state`."""
        self.set_weights(state["online"])
        with torch.no_grad():
            self.target_flat.values.copy_(torch.from_numpy(state["target"]))
        self.optimizer.state[self.online_flat.values] = {
            name: torch.from_numpy(value).to(self.device).clone()
            for name, value in state["optimizer"].items()
        }


def _array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's values; on the CPU without a copy."""
    return tensor.cpu().numpy()


def build_optimizer(settings: OptimizerSettings, flat: FlatParameters) -> torch.optim.Optimizer:
    """The optimizer of a network's flat parameters."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(
            [flat.values], lr=settings.learning_rate, eps=settings.optimizer_eps, fused=True
        )
    return RMSProp(
        [flat.values],
        lr=settings.learning_rate,
        decay=settings.rms_decay,
        eps=settings.optimizer_eps,
        momentum=settings.momentum,
        centered=settings.centered,
    )
