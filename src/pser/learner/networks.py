"""The networks at hand: Mnih et al. 2015's, a smaller one, MinAtar's, and a multi-layer perceptron."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pser.errors import PserError
from pser.learner.planes import FILTERS, POSITIONS, SparseConvolution
from pser.memory.storage import machine_bytes

NETWORK_OF_FAMILY = {"atari": "nature", "minatar": "minatar", "gym": "mlp"}
"""The network that `auto` stands for."""


NETWORK_COPIES = 5
"""Numbers kept per weight in training: online and target network, gradient, and two averages of the optimizer."""


class Prepare(nn.Module):
    """Observations as the first layer takes them; nothing here is learned."""


class Vectors(Prepare):
    """Observations as flat float32 vectors."""

    def forward(self, observation: Tensor) -> Tensor:
        """(batch, …) → (batch, size)."""
        return observation.to(torch.float32).flatten(1)


class Pixels(Prepare):
    """Frames 0..255 as numbers 0..1, laid out with the channels last: convolutions are then faster."""

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, stack, height, width), in another layout of memory."""
        # Three passes, yet faster than converting, scaling and rearranging in fewer.
        # A copy even of floats: they are the caller's.
        floats = frames.to(torch.float32, copy=True).mul_(1 / 255)
        return floats.contiguous(memory_format=torch.channels_last)


@dataclass(frozen=True)
class Streams:
    """The outputs of a network: one stream, or several side by side."""

    sizes: tuple[int, ...]
    """How many outputs each has."""
    share_hidden: bool = False
    """Whether the layer before the outputs is one for all streams."""


class QNetwork(nn.Module):
    """Observations (batch, …) → outputs (batch, all streams'): a body, then one head per stream.

    Without a `prepare` the body takes observations as they are. The heads' outputs stand side by side; what they mean
    is for the learner to say. Each head has a hidden layer of its own, unless they share it.
    """

    def __init__(
        self, prepare: Prepare | None, body: nn.Module, features: int, width: int, streams: Streams
    ) -> None:
        super().__init__()
        self.prepare, self.body, self.trunk = prepare, body, nn.Sequential()
        self.share_hidden = streams.share_hidden
        if streams.share_hidden:
            self.trunk = nn.Sequential(nn.Linear(features, width), nn.ReLU(inplace=True))
            heads = [nn.Sequential(nn.Linear(width, size)) for size in streams.sizes]
        else:
            heads = [
                nn.Sequential(nn.Linear(features, width), nn.ReLU(inplace=True), nn.Linear(width, size))
                for size in streams.sizes
            ]
        self.heads = nn.ModuleList(heads)

    def forward(self, observation: Tensor) -> Tensor:
        """The heads' outputs."""
        x = observation if self.prepare is None else self.prepare(observation)
        features = self.body(x).flatten(1)
        if self.share_hidden:
            features = self.trunk(features)
        outputs = [head(features) for head in self.heads]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)


def build_network(
    kind: str, shape: tuple[int, ...], streams: Streams, *, hidden: tuple[int, ...]
) -> QNetwork:
    """The named network ("nature", "der", "minatar", "mlp") for observations of `shape`."""
    builders: dict[str, Callable[..., QNetwork]] = {"nature": _nature, "der": _der, "minatar": _minatar}
    return builders[kind](shape, streams) if kind in builders else _mlp(shape, streams, hidden)


def _mlp(shape: tuple[int, ...], streams: Streams, hidden: tuple[int, ...]) -> QNetwork:
    """Linear layers of the hidden widths; the last of them is the heads' own."""
    widths = (math.prod(shape), *hidden)
    _require_room(sum(a * b for a, b in itertools.pairwise((*widths, sum(streams.sizes)))), hidden)
    layers = [(nn.Linear(a, b), nn.ReLU(inplace=True)) for a, b in itertools.pairwise(widths[:-1])]
    body = nn.Sequential(*itertools.chain(*layers))
    return QNetwork(Vectors(), body, widths[-2], widths[-1], streams)


def _require_room(weights: int, hidden: tuple[int, ...]) -> None:
    """Refuse a network that the computer has no memory for, before it is asked for and the system ends us."""
    needed = 4 * NETWORK_COPIES * weights
    here = machine_bytes()
    if here is not None and needed > here:
        raise PserError(
            f"a network must fit into memory ({here / 1e9:.0f} GB), got hidden {hidden}, which takes "
            f"{needed / 1e9:,.0f} GB to train: lower --hidden"
        )


def _nature(shape: tuple[int, ...], streams: Streams) -> QNetwork:
    """Mnih et al. 2015: three convolutions on frames divided by 255, then 512 units."""
    _require_frames(shape, "nature")
    body = nn.Sequential(
        nn.Conv2d(shape[0], 32, kernel_size=8, stride=4),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, kernel_size=4, stride=2),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, kernel_size=3),
        nn.ReLU(inplace=True),
    )
    return QNetwork(Pixels(), body, 3136, 512, streams)


def _der(shape: tuple[int, ...], streams: Streams) -> QNetwork:
    """Van Hasselt et al. 2019: two 5×5 convolutions with stride 5 on frames divided by 255, then 256 units."""
    _require_frames(shape, "der")
    body = nn.Sequential(
        nn.Conv2d(shape[0], 32, kernel_size=5, stride=5),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, kernel_size=5, stride=5),
        nn.ReLU(inplace=True),
    )
    return QNetwork(Pixels(), body, 576, 256, streams)


def _require_frames(shape: tuple[int, ...], network: str) -> None:
    if len(shape) != 3 or shape[1:] != (84, 84):
        raise PserError(f"the {network} network needs frames of 84×84, got {shape}: choose --network mlp")


def _minatar(shape: tuple[int, ...], streams: Streams) -> QNetwork:
    """Young and Tian 2019: one 3×3 convolution with 16 filters on planes of 0 and 1, then 128 units."""
    if len(shape) != 3 or shape[1:] != (10, 10):
        raise PserError(f"the minatar network needs 10×10 cells, got {shape}: choose --network mlp")
    return QNetwork(None, SparseConvolution(shape[0]), POSITIONS * FILTERS, 128, streams)
