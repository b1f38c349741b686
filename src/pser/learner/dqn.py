"""DQN (Mnih et al. 2015) and its kin: a network, a head that says what its outputs mean, and what they are trained to.

Every part is a switch of its own: the loss (head.py), Double Q (here), dueling (dueling.py), noise (noisy.py), n-step
returns (the memory's); all of them together are Rainbow (Hessel et al. 2018). An update stays on the device: the
batch goes there, what the memory is told comes back once.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import pser
from pser.learner import dueling
from pser.learner.agent import Floats, Ints, Learned, Statistics
from pser.learner.flat import FlatParameters
from pser.learner.head import Head, build_head
from pser.learner.networks import NETWORK_OF_FAMILY, Streams, build_network
from pser.learner.noisy import Noise, make_noisy
from pser.learner.optimizer import build_optimizer, checked_state
from pser.learner.own_network import AsFloats, NetworkFactory, find_factory, make_own
from pser.learner.path import path_of
from pser.learner.seeds import derived_seed
from pser.learner.settings import AgentSettings, TrainSettings


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
        network: NetworkFactory | None = None,
    ) -> None:
        self.settings, self.device, self.num_actions = settings.agent, device, num_actions
        self.signal, self.on_cpu = settings.replay.priority_signal, device.type == "cpu"
        self.head: Head = build_head(settings.agent, num_actions, device)
        kind = settings.agent.network
        if kind == "auto":
            kind = NETWORK_OF_FAMILY[settings.game.family]
        self.online, self.target = (
            seeded_network(settings.agent, kind, shape, self.streams, seed=seed, factory=network)
            for _ in "ot"
        )
        self.online_flat = FlatParameters(self.online, device)
        self.target_flat = FlatParameters(self.target, device)
        self.noise: tuple[Noise, ...] = ()
        if settings.agent.noisy:
            stream = torch.Generator(device).manual_seed(derived_seed(settings.run.seed, "noise"))
            self.noise = (Noise(self.online, stream), Noise(self.target, stream))
        self.online_path, self.target_path = path_of(self.online), path_of(self.target)
        self.optimizer = build_optimizer(settings.optimizer, self.online_flat)

    @property
    def streams(self) -> Streams:
        """Outputs of the network: one stream, or the value's and the advantages'."""
        of_actions = self.num_actions * self.head.per_action
        if not self.settings.dueling:
            return Streams((of_actions,))
        return Streams((self.head.per_action, of_actions), self.settings.dueling_shared)

    def act(
        self,
        observation: NDArray[Any],
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        *,
        training: bool = False,
    ) -> Ints:
        """ε-greedy actions for a batch of observations; the network is asked only if an action is greedy.

        A noisy network plays by its means, except in training.
        """
        explore = rng.random(len(observation)) < epsilon
        if explore.all():
            return rng.integers(self.num_actions, size=len(observation))
        if training and self.noise:
            self.noise[0].redraw()
        action: Ints = self.q_values(observation).argmax(1)
        self._silence()
        if explore.any():
            action[explore] = rng.integers(self.num_actions, size=np.count_nonzero(explore))
        return action

    def q_values(self, observation: NDArray[Any]) -> Floats:
        """Q(s, ·) by the online network."""
        with torch.inference_mode():
            return _array(
                self.head.q_values(self._values(self.online_path.forward(self._tensor(observation))))
            )

    def target_q_values(self, observation: NDArray[Any]) -> Floats:
        """Q(s, ·) by the target network."""
        with torch.inference_mode():
            return _array(
                self.head.q_values(self._values(self.target_path.forward(self._tensor(observation))))
            )

    def new_priorities(
        self,
        observation: NDArray[Any],
        action: Ints,
        reward: NDArray[np.float64],
        next_observation: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> Floats:
        """CurrentTD: the priority signal of new transitions, over one step, all by the online network."""
        both = self._tensor(np.concatenate([observation, next_observation]))
        discount = np.where(terminated, np.float32(0), np.float32(self.settings.gamma))
        with torch.inference_mode():
            values, next_values = self._values(self.online_path.forward(both)).chunk(2)
            taken = self.head.taken(values, self._tensor(action))
            targets = self.head.targets(
                next_values, None, self._tensor(reward.astype(np.float32)), self._tensor(discount)
            )
            return _array(self.head.signal(self.signal, taken, targets))

    def _silence(self) -> None:
        """Let the networks be their means until noise is drawn again."""
        for noise in self.noise:
            noise.on = False

    def learn(self, batch: "pser.Batch", *, measure: bool = True) -> Learned:
        """One update of the online network on a batch from the memory."""
        head = self.head
        observation, action = self._tensor(batch.observation), self._tensor(batch.action)
        next_observation, reward = self._tensor(batch.next_observation), self._tensor(batch.reward)
        discount, weights = self._tensor(batch.discount), self._tensor(batch.weights)
        with torch.inference_mode():
            for noise in self.noise:  # the online and the target network draw their own
                noise.redraw()
            choice = None
            if self.settings.double_q:  # the online network chooses, the target network rates
                chooser = head.q_values(self._values(self.online_path.forward(next_observation)))
                choice = chooser.argmax(1)
            next_values = self._values(self.target_path.forward(next_observation))
            targets = head.targets(next_values, choice, reward, discount)
            outputs, saved = self.online_path.forward_saving(observation)
            values = self._values(outputs)
            gradient = head.gradient(values, action, targets, weights)
            if self.settings.dueling:
                gradient = dueling.split_gradient(gradient, head.per_action)
            loose = self.online_path.backward(saved, gradient)
            if self.settings.max_grad_norm:
                if loose:
                    self.online_flat.collect(loose)
                    loose = ()
                self.online_flat.clip_gradients(self.settings.max_grad_norm)
            self.optimizer.step(loose)
            self._silence()
            taken = head.taken(values, action)
            signal = head.signal(self.signal, taken, targets)
            statistics = self._statistics(values, action, taken, targets, weights) if measure else None
            return Learned(_array(signal), statistics)

    def _statistics(
        self, values: Tensor, action: Tensor, taken: Tensor, targets: Tensor, weights: Tensor
    ) -> Statistics:
        """The means over a batch, brought back together."""
        q = self.head.q_values(values).gather(1, action.unsqueeze(1)).mean()
        loss = (weights * self.head.losses(taken, targets)).mean()
        td_abs = self.head.td_errors(taken, targets).abs().mean()
        return Statistics(*(float(mean) for mean in _array(torch.stack([loss, q, td_abs]))))

    def update_target(self) -> None:
        """Copy the online network into the target network."""
        self.target_flat.copy_from(self.online_flat)

    def _values(self, outputs: Tensor) -> Tensor:
        """What the network says of every action."""
        return dueling.combine(outputs, self.head.per_action) if self.settings.dueling else outputs

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """The array as a tensor on the device; on the CPU without a copy."""
        tensor = torch.from_numpy(array)
        return tensor if self.on_cpu else tensor.to(self.device)

    def get_weights(self) -> Floats:
        """A copy of the online network's parameters."""
        return self.online_flat.get_state()

    def set_weights(self, weights: Floats) -> None:
        """Set the online network's parameters."""
        self.online_flat.set_state(weights)

    def get_state(self) -> dict[str, Any]:
        """Networks and optimizer as NumPy arrays."""
        state = {
            "online": self.get_weights(),
            "target": self.target_flat.get_state(),
            "optimizer": {name: _array(value).copy() for name, value in self.optimizer.state().items()},
        }
        if self.noise:
            state["noise"] = self.noise_stream()
        return state

    def noise_stream(self) -> NDArray[np.uint8]:
        """Where the random stream of a noisy network is."""
        stream: NDArray[np.uint8] = self.noise[0].generator.get_state().numpy()
        return stream

    def set_noise_stream(self, state: object) -> None:
        """Continue the random stream of a noisy network from there."""
        self.noise[0].set_stream(state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state`."""
        averages = checked_state(self.optimizer, state["optimizer"])
        self.online_flat.check(state["online"])
        self.target_flat.check(state["target"])
        if self.noise:
            self.set_noise_stream(state.get("noise"))
        self.online_flat.set_state(state["online"])
        self.target_flat.set_state(state["target"])
        own = self.optimizer.state()
        with torch.no_grad():
            for name, value in averages.items():
                own[name].copy_(value)


def seeded_network(
    settings: AgentSettings,
    kind: str,
    shape: tuple[int, ...],
    streams: Streams,
    *,
    seed: int,
    factory: NetworkFactory | None = None,
) -> nn.Module:
    """The network that the settings name, or that the factory makes, drawn from `seed` alone."""
    if factory is None and ":" in kind:
        factory = find_factory(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if factory is not None:
            network: nn.Module = AsFloats(make_own(factory, shape, sum(streams.sizes)))
        else:
            network = build_network(kind, shape, streams, hidden=settings.hidden)
    if settings.noisy:
        make_noisy(network, settings.noisy_sigma)
    return network


def _array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's values; on the CPU without a copy."""
    return tensor.cpu().numpy()
