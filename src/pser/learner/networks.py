"""Q-networks: the one of Mnih et al. 2015, MinAtar's, and a multi-layer perceptron.

Layers are called by `forward`: a module's call machinery, made for hooks, costs as much as a small layer.
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from pser.errors import PserError


class QNetwork(nn.Module):
    """Observations (batch, …) → one value per action (batch, actions): a body, then a head."""

    def __init__(
        self, body: nn.Module, features: int, num_actions: int, *, dueling: bool, width: int
    ) -> None:
        super().__init__()
        self.body = body
        self.num_actions = num_actions
        self.dueling = dueling
        if dueling:
            self.value = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, 1))
            self.advantage = nn.Sequential(
                nn.Linear(features, width), nn.ReLU(), nn.Linear(width, num_actions)
            )
        else:
            self.hidden = nn.Linear(features, width)
            self.q = nn.Linear(width, num_actions)

    def forward(self, observation: Tensor) -> Tensor:
        """Q(s, ·); dueling: V(s) + A(s, ·) − mean A(s, ·) (Wang et al. 2016, Eq. 9)."""
        features = self.body.forward(observation)
        if self.dueling:
            advantage: Tensor = self.advantage(features)
            return self.value(features) + advantage - advantage.mean(1, keepdim=True)  # type: ignore[no-any-return]
        return self.q.forward(functional.relu_(self.hidden.forward(features)))


class NatureBody(nn.Module):
    """The convolutions of Mnih et al. 2015 on uint8 frames (batch, stack, 84, 84)."""

    FEATURES = 3136

    def __init__(self, stack: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(stack, 32, kernel_size=8, stride=4)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=4, stride=2)
        self.conv3 = nn.Conv2d(64, 64, kernel_size=3)

    def forward(self, frames: Tensor) -> Tensor:
        """Frames 0..255 → 3136 features. The first weights carry the division by 255: they are fewer."""
        x = frames.to(torch.float32, memory_format=torch.channels_last)
        x = functional.relu_(functional.conv2d(x, self.conv1.weight * (1 / 255), self.conv1.bias, stride=4))
        x = functional.relu_(self.conv2.forward(x))
        return functional.relu_(self.conv3.forward(x)).flatten(1)


class MinAtarBody(nn.Module):
    """One 3×3 convolution with 16 filters on 0/1 planes (batch, channels, 10, 10) (Young and Tian 2019)."""

    FEATURES = 1024

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, kernel_size=3)

    def forward(self, channels: Tensor) -> Tensor:
        """Channels 0/1 → 1024 features."""
        return functional.relu_(self.conv.forward(channels.to(torch.float32))).flatten(1)


class MlpBody(nn.Module):
    """All hidden layers but the last, which the head owns, on vectors of any shape."""

    def __init__(self, size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        widths = (size, *hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, observation: Tensor) -> Tensor:
        """(batch, …) → (batch, last width)."""
        x = observation.to(torch.float32).flatten(1)
        for layer in self.layers:
            x = functional.relu_(layer.forward(x))
        return x


def build_network(
    kind: str, shape: tuple[int, ...], num_actions: int, *, hidden: tuple[int, ...], dueling: bool, seed: int
) -> QNetwork:
    """The named network ("nature", "minatar", "mlp") for observations of `shape`, drawn from `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "nature":
            if len(shape) != 3 or shape[1:] != (84, 84):
                raise PserError(
                    f"the nature network needs frames of 84×84, got {shape}: choose --network mlp"
                )
            return QNetwork(
                NatureBody(shape[0]), NatureBody.FEATURES, num_actions, dueling=dueling, width=512
            )
        if kind == "minatar":
            if len(shape) != 3 or shape[1:] != (10, 10):
                raise PserError(f"the minatar network needs 10×10 cells, got {shape}: choose --network mlp")
            return QNetwork(
                MinAtarBody(shape[0]), MinAtarBody.FEATURES, num_actions, dueling=dueling, width=128
            )
        size = 1
        for extent in shape:
            size *= extent
        features = hidden[-2] if len(hidden) > 1 else size
        return QNetwork(MlpBody(size, hidden[:-1]), features, num_actions, dueling=dueling, width=hidden[-1])


NETWORK_OF_FAMILY = {"atari": "nature", "minatar": "minatar", "gym": "mlp"}
"""The network that `auto` stands for."""
