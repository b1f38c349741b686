"""Chains of linear layers, convolutions and ReLUs, with a backward pass of their own.

What autograd does for such a chain is a few lines; written out, they put each gradient where the optimizer reads it,
and nothing else is recorded or allocated. Taken where it applies, and nowhere to be asked for: every other network
goes through autograd. Tests compare the two.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from pser import _kernel
from pser.learner.networks import QNetwork
from pser.learner.noisy import NoisyLinear
from pser.learner.own_network import AsFloats, as_floats
from pser.learner.planes import SparseConvolution, cells, convolve, convolve_backward


class Layer(Protocol):
    """One link of a chain; made after the parameters have found their place, which they keep."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """Overwrite the parameters' `.grad`, given ∂/∂y; returns ∂/∂x if that is asked for."""


def _gradient(parameter: Tensor) -> Tensor:
    """Where a parameter's gradient goes."""
    assert parameter.grad is not None
    return parameter.grad


class _Linear:
    def __init__(self, layer: nn.Linear, relu: bool) -> None:
        self.weight, self.bias, self.relu = layer.weight.detach(), layer.bias.detach(), relu
        self.transposed = self.weight.t()
        self.weight_gradient, self.bias_gradient = _gradient(layer.weight), _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.bias, x, self.transposed)
        return y.relu_() if self.relu else y

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """∂/∂W = gᵀx, ∂/∂b = Σ g over the rows, and ∂/∂x = gW if something comes before."""
        if self.relu:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        torch.mm(gradient.t(), x, out=self.weight_gradient)
        torch.sum(gradient, 0, out=self.bias_gradient)
        return torch.mm(gradient, self.weight) if onward else gradient


class _Noisy:
    """A noisy linear layer: the noise is mixed into the weights once a draw."""

    def __init__(self, layer: NoisyLinear, relu: bool) -> None:
        assert layer.noise is not None
        self.noise, self.relu, self.drawn = layer.noise, relu, -1
        self.input_noise, self.output_noise = layer.input_noise, layer.output_noise
        self.mean = (layer.weight.detach(), layer.bias.detach())
        self.sigma = (layer.weight_sigma.detach(), layer.bias_sigma.detach())
        self.gradients = (_gradient(layer.weight), _gradient(layer.bias))
        self.sigma_gradients = (_gradient(layer.weight_sigma), _gradient(layer.bias_sigma))
        self.mixed = (torch.empty_like(self.mean[0]), torch.empty_like(self.mean[1]))
        self.in_kernel = layer.weight.device.type == "cpu"

    def _weights(self) -> tuple[Tensor, Tensor]:
        if not self.noise.on:
            return self.mean
        if self.drawn != self.noise.draws:
            self.drawn = self.noise.draws
            self._mix()
        return self.mixed

    def _mix(self) -> None:
        out, inputs = self.output_noise, self.input_noise
        if self.in_kernel:
            arrays = (self.mean[0], self.sigma[0], out, inputs, self.mixed[0])
            _kernel.mix_noise(*(array.numpy() for array in arrays))
        else:
            torch.addcmul(self.mean[0], self.sigma[0], torch.outer(out, inputs), out=self.mixed[0])
        torch.addcmul(self.mean[1], self.sigma[1], out, out=self.mixed[1])

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self._weights()
        y = torch.addmm(bias, x, weight.t())
        return y.relu_() if self.relu else y

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """∂/∂σ = ∂/∂W·ε besides what a linear layer has."""
        if self.relu:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        (to_weight, to_bias), (to_sigma, to_bias_sigma) = self.gradients, self.sigma_gradients
        out, inputs = self.output_noise, self.input_noise
        torch.mm(gradient.t(), x, out=to_weight)
        torch.sum(gradient, 0, out=to_bias)
        if self.in_kernel:
            _kernel.noise_gradient(to_weight.numpy(), out.numpy(), inputs.numpy(), to_sigma.numpy())
        else:
            torch.mul(to_weight, torch.outer(out, inputs), out=to_sigma)
        torch.mul(to_bias, out, out=to_bias_sigma)
        return torch.mm(gradient, self.mixed[0]) if onward else gradient


class _Conv:
    def __init__(self, layer: nn.Conv2d, relu: bool) -> None:
        self.weight, self.relu = layer.weight.detach(), relu
        self.bias = None if layer.bias is None else layer.bias.detach()
        self.stride, self.padding = layer.stride, layer.padding
        self.weight_gradient = _gradient(layer.weight)
        self.bias_gradient = None if layer.bias is None else _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.conv2d(x, self.weight, self.bias, self.stride, self.padding)
        return y.relu_() if self.relu else y

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """The convolution's own backward pass; ∂/∂x only if something comes before."""
        if self.relu:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        to_input, weight, _ = torch.ops.aten.convolution_backward(
            gradient,
            x,
            self.weight,
            None,
            self.stride,
            self.padding,
            [1, 1],
            False,
            [0, 0],
            1,
            [onward, True, False],
        )
        self.weight_gradient.copy_(weight)
        if self.bias_gradient is not None:
            torch.sum(gradient, (0, 2, 3), out=self.bias_gradient)
        return to_input if onward else gradient


class _SparsePlanes:
    """MinAtar's convolution by the kernel, the ReLU within it; always the first layer."""

    def __init__(self, layer: SparseConvolution) -> None:
        self.weight, self.bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        self.gradients = _gradient(layer.weight), _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return convolve(x, self.weight, self.bias)

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        convolve_backward(x, y, gradient, *self.gradients)
        return gradient


class _Flatten:
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        return gradient.view_as(x)


class Chain:
    """Layers one after the other."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output."""
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def forward_saving(self, x: Tensor) -> list[Tensor]:
        """The input and the output of every layer."""
        outputs = [x]
        for layer in self.layers:
            x = layer.forward(x)
            outputs.append(x)
        return outputs

    def backward(self, outputs: list[Tensor], gradient: Tensor, *, to_input: bool) -> Tensor:
        """Overwrite every parameter's `.grad`, given ∂/∂(last output); returns ∂/∂input if that is asked for."""
        for number in reversed(range(len(self.layers))):
            onward = to_input or number > 0
            gradient = self.layers[number].backward(outputs[number], outputs[number + 1], gradient, onward)
        return gradient


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
            body: Chain | None = Chain([_SparsePlanes(first) if in_kernel else _Linear(first, relu=True)])
        else:
            assert network.prepare is not None
            prepare, body = network.prepare.forward, _chain(first)
        chains = [body, *(_chain(part) for part in (network.trunk, *network.heads))]
        whole = [chain for chain in chains if chain is not None]
        return FastPath(prepare, whole[0], whole[1], whole[2:]) if len(whole) == len(chains) else None
    chain = _chain(network.network) if type(network) is AsFloats else None
    return None if chain is None or not chain.layers else FastPath(as_floats, chain, Chain([]), [])


def _chain(module: nn.Module) -> Chain | None:
    """The layers of an nn.Sequential as a chain; None if there is one that a chain cannot hold."""
    if type(module) is not nn.Sequential:
        return None
    layers: list[Layer] = []
    for layer, following in itertools.pairwise([*module, None]):
        relu = type(following) is nn.ReLU
        if type(layer) is nn.Linear and layer.bias is not None:
            layers.append(_Linear(layer, relu))
        elif type(layer) is NoisyLinear and layer.noise is not None:
            layers.append(_Noisy(layer, relu))
        elif type(layer) is nn.Conv2d and _is_plain(layer):
            layers.append(_Conv(layer, relu))
        elif type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) == (1, -1):
            layers.append(_Flatten())
        elif type(layer) is not nn.ReLU or not layers or isinstance(layers[-1], _Flatten):
            return None  # a ReLU belongs to the layer before it
    return Chain(layers)


def _is_plain(layer: nn.Conv2d) -> bool:
    simple = (layer.dilation, layer.groups, layer.padding_mode) == ((1, 1), 1, "zeros")
    return simple and isinstance(layer.padding, tuple)


def _is_special(module: nn.Module) -> bool:
    """Whether somebody hangs on to the module's calls, or keeps parameters of it from learning."""
    return bool(
        module._forward_hooks
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
