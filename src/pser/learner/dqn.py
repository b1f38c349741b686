"""DQN (Mnih et al. 2015) with importance-sampling weights: acting, learning, and the equations in between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import pser
from pser.learner.flat import FlatParameters
from pser.learner.networks import NETWORK_OF_FAMILY, build_network
from pser.learner.rmsprop import RMSProp
from pser.learner.settings import OptimizerSettings, TrainSettings


def bootstrap_value(q_target: Tensor, q_online: Tensor | None) -> Tensor:
    """max_a Q⁻(s', a), or Q⁻(s', argmax_a Q(s', a)) if Q is given (van Hasselt et al. 2016, Eq. 4)."""
    if q_online is None:
        return q_target.amax(1)
    return q_target.gather(1, q_online.argmax(1, keepdim=True)).squeeze(1)


def td_errors(q: Tensor, action: Tensor, reward: Tensor, discount: Tensor, value_next: Tensor) -> Tensor:
    """δ = r + γ^m·V(s') − Q(s, a); the discount is 0 where the episode terminated (Mnih et al. 2015, Eq. 2)."""
    return torch.addcmul(reward, discount, value_next) - q.gather(1, action.unsqueeze(1)).squeeze(1)


def huber(delta: Tensor) -> Tensor:
    """δ²/2 for |δ| ≤ 1, |δ| − 1/2 beyond."""
    size = delta.abs()
    return torch.where(size <= 1, 0.5 * delta * delta, size - 0.5)


def q_gradient(q: Tensor, action: Tensor, delta: Tensor, weights: Tensor) -> Tensor:
    """∂/∂Q of mean(w·Huber(δ)): −w·clip(δ, −1, 1)/B at the action taken, 0 elsewhere."""
    at_action = weights * delta.clamp(-1, 1) / -len(delta)
    return torch.zeros_like(q).scatter_(1, action.unsqueeze(1), at_action.unsqueeze(1))


@dataclass(frozen=True)
class Learned:
    """What one update saw."""

    loss: float
    """mean(w·Huber(δ)) over the batch."""
    q_mean: float
    """Mean of Q(s, a) over the batch, before the update."""
    td_abs_mean: float
    """Mean of |δ| over the batch, before the update."""
    priority_signal: NDArray[np.float32]
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
        self.num_actions = num_actions
        self.online, self.target = network(), network()
        self.online_flat = FlatParameters(self.online, device)
        self.target_flat = FlatParameters(self.target, device)
        self.target.requires_grad_(False)
        self.optimizer = build_optimizer(settings.optimizer, self.online_flat)

    def act(self, observation: NDArray[Any], epsilon: float, rng: np.random.Generator) -> NDArray[np.int64]:
        """ε-greedy actions for a batch of observations; the network is asked only if some action is greedy."""
        explore = rng.random(len(observation)) < epsilon
        action = rng.integers(self.num_actions, size=len(observation))
        if not explore.all():
            with torch.inference_mode():
                greedy = self.online(self._tensor(observation)).argmax(1).cpu().numpy()
            action = np.where(explore, action, greedy)
        return action

    def new_td_errors(
        self,
        observation: NDArray[Any],
        action: NDArray[np.int64],
        reward: NDArray[np.float64],
        next_observation: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """CurrentTD: the priority signal of new transitions, both sides by the online network, over one step."""
        with torch.inference_mode():
            q, q_next = self.online(self._tensor(np.concatenate([observation, next_observation]))).chunk(2)
            discount = np.where(terminated, 0.0, self.agent.gamma).astype(np.float32)
            delta = td_errors(
                q,
                self._tensor(action),
                self._tensor(reward.astype(np.float32)),
                self._tensor(discount),
                bootstrap_value(q_next, None),
            )
            return self._signal(delta)

    def learn(self, batch: "pser.Batch") -> Learned:
        """One update of the online network on a batch from the memory."""
        action, weights = self._tensor(batch.action), self._tensor(batch.weights)
        next_observation = self._tensor(batch.next_observation)
        q = self.online(self._tensor(batch.observation))  # (batch, actions), the only part with a graph
        with torch.no_grad():
            q_next = self.online(next_observation) if self.agent.double_q else None
            value_next = bootstrap_value(self.target(next_observation), q_next)
            delta = td_errors(q, action, self._tensor(batch.reward), self._tensor(batch.discount), value_next)
            self.online_flat.gradients.zero_()
            gradient = q_gradient(q, action, delta, weights)
        q.backward(gradient)
        if self.agent.max_grad_norm:
            self.online_flat.clip_gradients(self.agent.max_grad_norm)
        self.optimizer.step()
        with torch.no_grad():
            return Learned(
                loss=float((weights * huber(delta)).mean()),
                q_mean=float(q.gather(1, action.unsqueeze(1)).mean()),
                td_abs_mean=float(delta.abs().mean()),
                priority_signal=self._signal(delta),
            )

    def update_target(self) -> None:
        """Copy the online network into the target network."""
        self.target_flat.copy_from(self.online_flat)

    def _signal(self, delta: Tensor) -> NDArray[np.float32]:
        """What becomes the priority: δ, or √(Huber(δ) + 1e-10) as in the authors' code."""
        signal = delta if self.replay.priority_signal == "td" else torch.sqrt(huber(delta) + 1e-10)
        return signal.cpu().numpy()  # type: ignore[no-any-return]

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """The array as a tensor on the device; on the CPU without a copy."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def get_weights(self) -> NDArray[np.float32]:
        """A copy of the online network's parameters."""
        return self.online_flat.values.detach().cpu().numpy().copy()  # type: ignore[no-any-return]

    def set_weights(self, weights: NDArray[np.float32]) -> None:
        """Set the online network's parameters."""
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
