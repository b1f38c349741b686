"""Q-networks: the one of Mnih et al. 2015, MinAtar's, and a multi-layer perceptron."""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pser.errors import PserError
from pser.learner.chain import Chain

NETWORK_OF_FAMILY = {"atari": "nature", "minatar": "minatar", "gym": "mlp"}
"""The network that `auto` stands for."""


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of a forward pass."""

    body: list[Tensor]
    heads: list[list[Tensor]]


class Vectors(nn.Module):
    """Observations as flat float32 vectors."""

    def forward(self, observation: Tensor) -> Tensor:
        """(batch, …) → (batch, size)."""
        return observation.to(torch.float32).flatten(1)


class Pixels(nn.Module):
    """Frames 0..255 as numbers 0..1, laid out with the channels last: convolutions are then faster."""

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, stack, height, width), in another layout of memory."""
        # Three passes, yet faster than converting, scaling and rearranging in fewer.
        # A copy even of floats: they are the caller's.
        floats = frames.to(torch.float32, copy=True).mul_(1 / 255)
        return floats.contiguous(memory_format=torch.channels_last)


class Patches(nn.Module):
    """Every 3×3 patch of 10×10 planes as a row: a convolution is then a linear layer over the rows.

    On so small a screen this is faster than a convolution, above all backward.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        plane, y, x = torch.meshgrid(torch.arange(channels), torch.arange(3), torch.arange(3), indexing="ij")
        within = (plane * 100 + y * 10 + x).flatten()
        corners = (torch.arange(8)[:, None] * 10 + torch.arange(8)).flatten()
        self.register_buffer("cells", (corners[:, None] + within).flatten(), persistent=False)
        self.size = 9 * channels

    def forward(self, planes: Tensor) -> Tensor:
        """(batch, channels, 10, 10) → (batch · 64 patches, channels · 9)."""
        floats = planes.to(torch.float32).flatten(1)
        return floats.index_select(1, self.cells).view(-1, self.size)  # type: ignore[arg-type]


class QNetwork(nn.Module):
    """Observations (batch, …) → one value per action (batch, actions): a body, then a plain or dueling head."""

    def __init__(
        self, prepare: nn.Module, body: Chain, features: int, width: int, num_actions: int, *, dueling: bool
    ) -> None:
        super().__init__()
        self.prepare, self.body = prepare, body
        outputs = (1, num_actions) if dueling else (num_actions,)
        self.heads = nn.ModuleList(
            Chain([nn.Linear(features, width), nn.Linear(width, size)], last_relu=False) for size in outputs
        )
        # Reading modules from modules costs as much as a small layer; these are read without.
        self._parts = (prepare.forward, body, list[Chain](self.heads))  # type: ignore[arg-type]

    def forward(self, observation: Tensor) -> Tensor:
        """Q(s, ·)."""
        return self.forward_saving(observation)[0]

    def forward_saving(self, observation: Tensor) -> tuple[Tensor, Saved]:
        """Q(s, ·), and what `backward` needs to know about it."""
        prepare, body, heads = self._parts
        outputs = body.forward_saving(prepare(observation))
        features = outputs[-1].reshape(len(observation), -1)
        saved = Saved(outputs, [head.forward_saving(features) for head in heads])
        if len(heads) == 1:
            return saved.heads[0][-1], saved
        return combine(value=saved.heads[0][-1], advantage=saved.heads[1][-1]), saved

    def backward(self, saved: Saved, gradient: Tensor) -> None:
        """Overwrite every parameter's `.grad`, given ∂/∂Q(s, ·)."""
        _, body, heads = self._parts
        parts = (gradient,) if len(heads) == 1 else split_gradient(gradient)
        to_features = [
            head.backward(outputs, part, to_input=True)
            for head, outputs, part in zip(heads, saved.heads, parts, strict=True)
        ]
        body.backward(saved.body, sum(to_features[1:], to_features[0]), to_input=False)


def combine(value: Tensor, advantage: Tensor) -> Tensor:
    """Q(s, ·) = V(s) + A(s, ·) − mean A(s, ·) (Wang et al. 2016, Eq. 9)."""
    return value + advantage - advantage.mean(1, keepdim=True)


def split_gradient(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """∂/∂V = Σ ∂/∂Q, and ∂/∂A = ∂/∂Q − mean ∂/∂Q: the backward pass of `combine`."""
    return gradient.sum(1, keepdim=True), gradient - gradient.mean(1, keepdim=True)


def build_network(
    kind: str, shape: tuple[int, ...], num_actions: int, *, hidden: tuple[int, ...], dueling: bool, seed: int
) -> QNetwork:
    """The named network ("nature", "minatar", "mlp") for observations of `shape`, drawn from `seed` alone."""
    builders = {"nature": _nature, "minatar": _minatar}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind in builders:
            return builders[kind](shape, num_actions, dueling)
        widths = (math.prod(shape), *hidden)
        body = Chain([nn.Linear(a, b) for a, b in itertools.pairwise(widths[:-1])], last_relu=True)
        return QNetwork(Vectors(), body, widths[-2], widths[-1], num_actions, dueling=dueling)


def _nature(shape: tuple[int, ...], num_actions: int, dueling: bool) -> QNetwork:
    """Mnih et al. 2015: three convolutions on frames divided by 255, then 512 units."""
    if len(shape) != 3 or shape[1:] != (84, 84):
        raise PserError(f"the nature network needs frames of 84×84, got {shape}: choose --network mlp")
    layers = [
        nn.Conv2d(shape[0], 32, kernel_size=8, stride=4),
        nn.Conv2d(32, 64, kernel_size=4, stride=2),
        nn.Conv2d(64, 64, kernel_size=3),
    ]
    return QNetwork(Pixels(), Chain(layers, last_relu=True), 3136, 512, num_actions, dueling=dueling)


def _minatar(shape: tuple[int, ...], num_actions: int, dueling: bool) -> QNetwork:
    """Young and Tian 2019: one 3×3 convolution with 16 filters on planes of 0 and 1, then 128 units."""
    if len(shape) != 3 or shape[1:] != (10, 10):
        raise PserError(f"the minatar network needs 10×10 cells, got {shape}: choose --network mlp")
    patches = Patches(shape[0])
    body = Chain([nn.Linear(patches.size, 16)], last_relu=True)
    return QNetwork(patches, body, 64 * 16, 128, num_actions, dueling=dueling)
