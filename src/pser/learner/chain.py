"""Layers one after the other, with a backward pass of their own.

What autograd does for a chain of convolutions, linear layers and ReLUs is a few lines; written out, they put each
gradient where the optimizer reads it, and nothing else is recorded or allocated. A test compares them with autograd.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class Chain(nn.Module):
    """Conv2d or Linear layers, a ReLU after each (after the last only if asked)."""

    def __init__(self, layers: Sequence[nn.Conv2d | nn.Linear], *, last_relu: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        relus = [True] * (len(layers) - 1) + [last_relu]
        self._plan = [(layer, relu) for layer, relu in zip(layers, relus, strict=False)]

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output."""
        return self.forward_saving(x)[-1]

    def forward_saving(self, x: Tensor) -> list[Tensor]:
        """The input and the output of every layer."""
        outputs = [x]
        for layer, relu in self._plan:
            x = functional.relu_(layer.forward(x)) if relu else layer.forward(x)
            outputs.append(x)
        return outputs

    def backward(self, outputs: list[Tensor], gradient: Tensor, *, to_input: bool) -> Tensor:
        """Overwrite every parameter's `.grad`, given ∂/∂(last output); returns ∂/∂input if that is asked for."""
        for number in reversed(range(len(self._plan))):
            (layer, relu), x, y = self._plan[number], outputs[number], outputs[number + 1]
            if relu:
                gradient = torch.ops.aten.threshold_backward(gradient.view_as(y), y, 0)
            onward = number > 0 or to_input
            if isinstance(layer, nn.Conv2d):
                gradient = _conv_backward(layer, x, gradient, onward)
            else:
                gradient = _linear_backward(layer, x, gradient, onward)
        return gradient


def _linear_backward(layer: nn.Linear, x: Tensor, gradient: Tensor, onward: bool) -> Tensor:
    """∂/∂W = gᵀx, ∂/∂b = Σ g over the rows, and ∂/∂x = gW if something comes before."""
    torch.mm(gradient.t(), x, out=layer.weight.grad)
    torch.sum(gradient, 0, out=layer.bias.grad)
    return gradient @ layer.weight if onward else gradient


def _conv_backward(layer: nn.Conv2d, x: Tensor, gradient: Tensor, onward: bool) -> Tensor:
    """The convolution's own backward pass; ∂/∂x only if something comes before."""
    to_input, weight, _ = torch.ops.aten.convolution_backward(
        gradient, x, layer.weight, None, layer.stride, [0, 0], [1, 1], False, [0, 0], 1, [onward, True, False]
    )
    assert layer.weight.grad is not None
    assert layer.bias is not None
    layer.weight.grad.copy_(weight)
    torch.sum(gradient, (0, 2, 3), out=layer.bias.grad)
    return to_input if onward else gradient
