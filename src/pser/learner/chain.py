"""Layers one after the other, with a backward pass of their own.

What autograd does for a chain of convolutions, linear layers and ReLUs is a few lines; written out, they put each
gradient where the optimizer reads it, and a small network learns a third faster on a CPU. A test compares them with
autograd.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class Chain(nn.Module):
    """Conv2d and Linear layers, a ReLU after each (after the last only if asked); 2-d layers see flat input."""

    def __init__(self, layers: Sequence[nn.Conv2d | nn.Linear], *, last_relu: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.last_relu = last_relu
        # Plain tuples: reading them from the modules each time costs as much as a small layer.
        self._steps = [(layer, isinstance(layer, nn.Conv2d)) for layer in layers]

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output."""
        return self.forward_saving(x)[-1]

    def forward_saving(self, x: Tensor) -> list[Tensor]:
        """The input and the output of every layer."""
        outputs, last = [x], len(self._steps) - 1
        for number, (layer, is_conv) in enumerate(self._steps):
            if is_conv:
                x = functional.conv2d(x, layer.weight, layer.bias, layer.stride)  # type: ignore[arg-type]
            else:
                x = functional.linear(x.flatten(1), layer.weight, layer.bias)
            if number < last or self.last_relu:
                x = functional.relu_(x)
            outputs.append(x)
        return outputs

    def backward(self, outputs: list[Tensor], gradient: Tensor, *, to_input: bool) -> Tensor | None:
        """Overwrite every parameter's `.grad`, given ∂/∂(last output); returns ∂/∂input if asked."""
        last = len(self._steps) - 1
        for number in range(last, -1, -1):
            (layer, is_conv), x, y = self._steps[number], outputs[number], outputs[number + 1]
            onward = number > 0 or to_input
            if number < last or self.last_relu:
                gradient = torch.ops.aten.threshold_backward(gradient.view_as(y), y, 0)
            if is_conv:
                gradient = _conv_backward(layer, x, gradient, onward)
            else:
                _linear_parameters_backward(layer, x.flatten(1), gradient)
                gradient = gradient @ layer.weight if onward else gradient
        return gradient.reshape(outputs[0].shape) if to_input else None


def _linear_parameters_backward(layer: nn.Linear, x: Tensor, gradient: Tensor) -> None:
    """∂/∂W = gᵀx and ∂/∂b = Σ g over the batch."""
    torch.mm(gradient.t(), x, out=layer.weight.grad)
    torch.sum(gradient, 0, out=layer.bias.grad)


def _conv_backward(layer: nn.Conv2d, x: Tensor, gradient: Tensor, onward: bool) -> Tensor:
    """The convolution's own backward pass; ∂/∂x only if something comes before."""
    to_input, weight, bias = torch.ops.aten.convolution_backward(
        gradient, x, layer.weight, [layer.out_channels], layer.stride, [0, 0], [1, 1], False, [0, 0], 1, [onward, True, True]
    )
    layer.weight.grad.copy_(weight)  # type: ignore[union-attr]
    layer.bias.grad.copy_(bias)  # type: ignore[union-attr]
    return to_input if onward else gradient  # type: ignore[no-any-return]
