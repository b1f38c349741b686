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


class QNetwork(nn.Module):
    """Observations (batch, …) → one value per action (batch, actions): a body, then a plain or dueling head."""

    def __init__(
        self, body: Chain, features: int, width: int, num_actions: int, *, dueling: bool, scale: float
    ) -> None:
        super().__init__()
        self.body = body
        self.num_actions = num_actions
        self.scale = scale
        """Observations are multiplied by this."""
        outputs = (1, num_actions) if dueling else (num_actions,)
        self.heads = nn.ModuleList(
            Chain([nn.Linear(features, width), nn.Linear(width, size)], last_relu=False) for size in outputs
        )
        self._heads = tuple(self.heads)

    def forward(self, observation: Tensor) -> Tensor:
        """Q(s, ·)."""
        return self.forward_saving(observation)[0]

    def forward_saving(self, observation: Tensor) -> tuple[Tensor, Saved]:
        """Q(s, ·), and what `backward` needs to know about it."""
        body = self.body.forward_saving(self._floats(observation))
        heads = [head.forward_saving(body[-1]) for head in self._heads]  # type: ignore[operator]
        if len(heads) == 1:
            return heads[0][-1], Saved(body, heads)
        return combine(value=heads[0][-1], advantage=heads[1][-1]), Saved(body, heads)

    def backward(self, saved: Saved, gradient: Tensor) -> None:
        """Overwrite every parameter's `.grad`, given ∂/∂Q(s, ·)."""
        parts = (gradient,) if len(self._heads) == 1 else split_gradient(gradient)
        below = None
        for head, outputs, part in zip(self._heads, saved.heads, parts, strict=True):
            to_body = head.backward(outputs, part, to_input=True)  # type: ignore[operator]
            below = to_body if below is None else below + to_body
        if len(saved.body) > 1:
            self.body.backward(saved.body, below, to_input=False)  # type: ignore[arg-type]

    def _floats(self, observation: Tensor) -> Tensor:
        """The observation as the first layer wants it."""
        x = observation.to(torch.float32)
        return x if self.scale == 1.0 else x * self.scale


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
        return QNetwork(body, widths[-2], widths[-1], num_actions, dueling=dueling, scale=1.0)


def _nature(shape: tuple[int, ...], num_actions: int, dueling: bool) -> QNetwork:
    """Mnih et al. 2015: three convolutions on frames 0..255 divided by 255, then 512 units."""
    if len(shape) != 3 or shape[1:] != (84, 84):
        raise PserError(f"the nature network needs frames of 84×84, got {shape}: choose --network mlp")
    layers = [
        nn.Conv2d(shape[0], 32, kernel_size=8, stride=4),
        nn.Conv2d(32, 64, kernel_size=4, stride=2),
        nn.Conv2d(64, 64, kernel_size=3),
    ]
    return QNetwork(Chain(layers, last_relu=True), 3136, 512, num_actions, dueling=dueling, scale=1 / 255)


def _minatar(shape: tuple[int, ...], num_actions: int, dueling: bool) -> QNetwork:
    """Young and Tian 2019: one 3×3 convolution with 16 filters on planes of 0 and 1, then 128 units."""
    if len(shape) != 3 or shape[1:] != (10, 10):
        raise PserError(f"the minatar network needs 10×10 cells, got {shape}: choose --network mlp")
    body = Chain([nn.Conv2d(shape[0], 16, kernel_size=3)], last_relu=True)
    return QNetwork(body, 1024, 128, num_actions, dueling=dueling, scale=1.0)
