"""Layers with a backward pass of their own, to be made a chain of."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from pser import _kernel
from pser.learner.device import kernel_reads
from pser.learner.noisy import NoisyLinear
from pser.learner.planes import FILTERS, POSITIONS, SparseConvolution, convolve, convolve_backward


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


def _rows(x: Tensor) -> Tensor:
    """What a linear layer sees: the last axis; most often there is only the batch before it."""
    return x if x.dim() == 2 else x.flatten(0, -2)


def _like(rows: Tensor, x: Tensor) -> Tensor:
    return rows if x.dim() == 2 else rows.view(x.shape)


class LinearLink:
    """A linear layer, and the ReLU after it if there is one."""

    def __init__(self, layer: nn.Linear, relu: bool) -> None:
        self.weight, self.bias, self.relu = layer.weight.detach(), layer.bias.detach(), relu
        self.transposed = self.weight.t()
        self.weight_gradient, self.bias_gradient = _gradient(layer.weight), _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
        y = torch.addmm(self.bias, _rows(x), self.transposed)
        y = y if x.dim() == 2 else y.view(*x.shape[:-1], -1)
        return y.relu_() if self.relu else y

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """∂/∂W = gᵀx, ∂/∂b = Σ g over the rows, and ∂/∂x = gW if something comes before."""
        if self.relu:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        rows = _rows(gradient)
        torch.mm(rows.t(), _rows(x), out=self.weight_gradient)
        torch.sum(rows, 0, out=self.bias_gradient)
        return _like(torch.mm(rows, self.weight), x) if onward else gradient


class NoisyLink:
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
        """The layer's output."""
        weight, bias = self._weights()
        y = torch.addmm(bias, _rows(x), weight.t())
        y = y if x.dim() == 2 else y.view(*x.shape[:-1], -1)
        return y.relu_() if self.relu else y

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """∂/∂σ = ∂/∂W·ε besides what a linear layer has."""
        if self.relu:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        (to_weight, to_bias), (to_sigma, to_bias_sigma) = self.gradients, self.sigma_gradients
        out, inputs = self.output_noise, self.input_noise
        rows = _rows(gradient)
        torch.mm(rows.t(), _rows(x), out=to_weight)
        torch.sum(rows, 0, out=to_bias)
        if self.in_kernel:
            _kernel.noise_gradient(to_weight.numpy(), out.numpy(), inputs.numpy(), to_sigma.numpy())
        else:
            torch.mul(to_weight, torch.outer(out, inputs), out=to_sigma)
        torch.mul(to_bias, out, out=to_bias_sigma)
        return _like(torch.mm(rows, self.mixed[0]), x) if onward else gradient


class ConvLink:
    """A convolution, and the ReLU after it if there is one."""

    def __init__(self, layer: nn.Conv2d, relu: bool) -> None:
        self.weight, self.relu = layer.weight.detach(), relu
        self.bias = None if layer.bias is None else layer.bias.detach()
        self.stride, self.padding = layer.stride, layer.padding
        self.weight_gradient = _gradient(layer.weight)
        self.bias_gradient = None if layer.bias is None else _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
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


class SmallConvLink(ConvLink):
    """A convolution over MinAtar's planes by PyTorch's own layer, and the ReLU after it; the first of a chain.

    On screens of 10×10 the kernel is faster, whose filters stand side by side for each position: it is given what lies
    filter after filter, and gives it back so. Others go PyTorch's way.
    """

    @staticmethod
    def fits(layer: nn.Conv2d) -> bool:
        """Whether the kernel has such filters, and can read them."""
        sizes = layer.out_channels, layer.kernel_size, layer.stride, layer.padding
        return (
            sizes == (FILTERS, (3, 3), (1, 1), (0, 0))
            and layer.bias is not None
            and kernel_reads(layer.weight)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
        if x.shape[2:] != (10, 10):
            return super().forward(x)
        assert self.bias is not None
        by_position = convolve(x.contiguous(), self.weight.numpy(), self.bias.numpy())
        return by_position.view(-1, POSITIONS, FILTERS).transpose(1, 2).reshape(-1, FILTERS, 8, 8)

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """Overwrite the parameters' `.grad`; nothing comes before, and ∂/∂x is not asked for."""
        if x.shape[2:] != (10, 10):
            return super().backward(x, y, gradient, onward)
        assert self.bias_gradient is not None
        y_by_position, by_position = (part.flatten(2).transpose(1, 2).flatten(1) for part in (y, gradient))
        convolve_backward(
            x.contiguous(), y_by_position, by_position, self.weight_gradient, self.bias_gradient
        )
        return gradient


class PlanesLink:
    """MinAtar's convolution by the kernel, the ReLU within it; always the first layer."""

    def __init__(self, layer: SparseConvolution) -> None:
        self.weight, self.bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        self.gradients = _gradient(layer.weight), _gradient(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
        return convolve(x, self.weight, self.bias)

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """Overwrite the parameters' `.grad`; nothing comes before, and ∂/∂x is not asked for."""
        convolve_backward(x, y, gradient, *self.gradients)
        return gradient


class FlattenLink:
    """All axes but the batch's as one."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
        return x.flatten(1)

    def backward(self, x: Tensor, y: Tensor, gradient: Tensor, onward: bool) -> Tensor:
        """∂/∂x = ∂/∂y, in x's shape."""
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
