"""Chains of linear layers, convolutions and ReLUs, with a backward pass of their own.

What autograd does for such a chain is a few lines; written out, they put each gradient where the optimizer reads it,
and nothing else is recorded or allocated. Taken where it applies, and nowhere to be asked for: every other network
goes through autograd. Tests compare the two.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pser.learner.links import (
    Chain,
    ConvLink,
    FlattenLink,
    Layer,
    LinearLink,
    NoisyLink,
    PlanesLink,
    SmallConvLink,
)
from pser.learner.networks import QNetwork
from pser.learner.noisy import NoisyLinear
from pser.learner.own_network import AsFloats, as_floats
from pser.learner.planes import SparseConvolution, cells
from pser.learner.straight import Divided, straight_line


class FastPath:
    """A network as chains: what prepares its input, a body, a trunk on flat features, and heads side by side."""

    def __init__(
        self, prepare: Callable[[Tensor], Tensor], body: Chain, trunk: Chain, heads: list[Chain]
    ) -> None:
        self.prepare, self.body, self.trunk, self.heads = prepare, body, trunk, heads

    def forward(self, observation: Tensor) -> Tensor:
        """The network's outputs."""
        x = self.body.forward(self.prepare(observation))
        if not self.heads:
            return x
        features = self.trunk.forward(x.reshape(len(observation), -1))
        outputs = [head.forward(features) for head in self.heads]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)

    def forward_saving(self, observation: Tensor) -> tuple[Tensor, Any]:
        """The network's outputs, and what `backward` needs to know about them."""
        body = self.body.forward_saving(self.prepare(observation))
        if not self.heads:
            return body[-1], (body, [], [])
        trunk = self.trunk.forward_saving(body[-1].reshape(len(observation), -1))
        heads = [head.forward_saving(trunk[-1]) for head in self.heads]
        outputs = [head[-1] for head in heads]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1), (body, trunk, heads)

    def backward(self, saved: Any, gradient: Tensor) -> Sequence[Tensor]:
        """Overwrite every parameter's `.grad`, given ∂/∂outputs; nothing is left to hand over."""
        body, trunk, heads = saved
        onward = bool(self.body.layers)
        if heads:
            parts: Iterable[Tensor] = (gradient,)
            if len(heads) > 1:
                parts = gradient.split_with_sizes([head[-1].shape[1] for head in heads], 1)
            to_features = [
                head.backward(outputs, part, to_input=onward or bool(self.trunk.layers))
                for head, outputs, part in zip(self.heads, heads, parts, strict=True)
            ]
            gradient = to_features[0]
            for other in to_features[1:]:
                gradient = gradient + other
            gradient = self.trunk.backward(trunk, gradient, to_input=onward)
            gradient = gradient.view_as(body[-1]) if onward else gradient
        self.body.backward(body, gradient, to_input=False)
        return ()


def fast_path(network: nn.Module) -> FastPath | None:
    """The network as chains, or None if it is made of anything else than they can hold."""
    if any(_is_special(module) for module in network.modules()) or _occurs_twice(network):
        return None
    if type(network) is QNetwork:
        first = network.body
        if type(first) is SparseConvolution:
            in_kernel = first.weight.device.type == "cpu"
            prepare = cells if in_kernel else first.patches
            body: Chain | None = Chain([PlanesLink(first) if in_kernel else LinearLink(first, relu=True)])
        else:
            assert network.prepare is not None
            prepare, body = network.prepare.forward, _parts(first)
        chains = [body, *(_parts(part) for part in (network.trunk, *network.heads))]
        whole = [chain for chain in chains if chain is not None]
        return FastPath(prepare, whole[0], whole[1], whole[2:]) if len(whole) == len(chains) else None
    return _own(network.network) if type(network) is AsFloats else None


def _parts(module: nn.Module) -> Chain | None:
    """The layers of an nn.Sequential as a chain."""
    return _chain(module) if type(module) is nn.Sequential else None


def _own(network: nn.Module) -> FastPath | None:
    """Somebody's own network, if it is one layer after the other; divisions before the first are its preparation."""
    layers = straight_line(network) or []
    divisions = itertools.takewhile(lambda layer: isinstance(layer, Divided), layers)
    divisors = [float(division.by) for division in divisions]  # type: ignore[arg-type]
    chain = _chain(layers[len(divisors) :])
    if chain is None or not chain.layers:
        return None
    # Convolutions are faster with the channels last.
    layout = torch.channels_last if type(chain.layers[0]) is ConvLink else torch.contiguous_format

    def prepare(observation: Tensor) -> Tensor:
        x = as_floats(observation)
        for divisor in divisors:
            x = x / divisor
        return x.contiguous(memory_format=layout)

    return FastPath(prepare, chain, Chain([]), [])


def _chain(modules: Iterable[nn.Module]) -> Chain | None:
    """The layers as a chain; None if there is one that a chain cannot hold."""
    layers: list[Layer] = []
    for layer, following in itertools.pairwise([*modules, None]):
        relu = type(following) is nn.ReLU
        if type(layer) is nn.Linear and layer.bias is not None:
            layers.append(LinearLink(layer, relu))
        elif type(layer) is NoisyLinear and layer.noise is not None:
            layers.append(NoisyLink(layer, relu))
        elif type(layer) is nn.Conv2d and _is_plain(layer):
            small = not layers and relu and SmallConvLink.fits(layer)
            layers.append((SmallConvLink if small else ConvLink)(layer, relu))
        elif type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) == (1, -1):
            layers.append(FlattenLink())
        elif type(layer) is not nn.ReLU or not layers or isinstance(layers[-1], FlattenLink):
            return None  # a ReLU belongs to the layer before it
    return Chain(layers)


def _is_plain(layer: nn.Conv2d) -> bool:
    simple = (layer.dilation, layer.groups, layer.padding_mode) == ((1, 1), 1, "zeros")
    return simple and isinstance(layer.padding, tuple)


def _is_special(module: nn.Module) -> bool:
    """Whether somebody hangs on to the module's calls, or keeps parameters of it from learning."""
    return bool(
        "forward" in vars(module)
        or module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or any(not parameter.requires_grad for parameter in module.parameters(recurse=False))
    )


def _occurs_twice(network: nn.Module) -> bool:
    """Whether a layer or a parameter is used in two places, whose gradients would have to be added."""
    named = list(network.named_parameters(remove_duplicate=False))
    layers = [module for _, module in network.named_modules(remove_duplicate=False)]
    return len(named) != len({id(parameter) for _, parameter in named}) or len(layers) != len(
        {id(module) for module in layers}
    )
