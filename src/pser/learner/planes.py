"""MinAtar's convolution: small planes that are mostly zero, by the kernel, which skips the cells that are."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pser import _kernel
from pser.errors import PserError
from pser.learner.device import kernel_reads

POSITIONS, FILTERS = 64, 16
"""Where a 3×3 patch fits into 10×10 cells, and what the kernel computes at each."""


class SparseConvolution(nn.Linear):
    """16 filters of 3×3 over planes of 10×10, and the ReLU after them: (batch, channels, 10, 10) → (batch, 64 · 16).

    The filters stand side by side for each position. The weights are those of a linear layer over patches, and where
    the kernel cannot be asked that is what it is: on so small a screen faster than a convolution, above all backward.
    Not a fully connected layer: noise leaves it alone.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(9 * channels, FILTERS)
        plane, y, x = torch.meshgrid(torch.arange(channels), torch.arange(3), torch.arange(3), indexing="ij")
        within = (plane * 100 + y * 10 + x).flatten()
        corners = (torch.arange(8)[:, None] * 10 + torch.arange(8)).flatten()
        self.register_buffer("cells", (corners[:, None] + within).flatten(), persistent=False)

    def forward(self, planes: Tensor) -> Tensor:
        """By the kernel if it can read the weights and nobody asks for ∂/∂planes."""
        weight, bias = self.weight, self.bias
        if planes.requires_grad or not kernel_reads(weight) or not kernel_reads(bias):
            return torch.relu(super().forward(self.patches(planes))).view(len(planes), -1)
        planes = cells(planes)
        if torch.is_grad_enabled():
            outputs: Tensor = _Convolve.apply(planes, weight, bias)  # type: ignore[no-untyped-call]
            return outputs
        return convolve(planes, weight.detach().numpy(), bias.detach().numpy())

    def patches(self, planes: Tensor) -> Tensor:
        """Every 3×3 patch as a row: (batch, channels, 10, 10) → (batch · 64, channels · 9)."""
        floats = planes.to(torch.float32).flatten(1)
        return floats.index_select(1, self.cells).view(-1, self.in_features)  # type: ignore[arg-type]


class _Convolve(torch.autograd.Function):
    """The kernel's convolution, for autograd."""

    @staticmethod
    def forward(ctx: Any, planes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        outputs = convolve(planes, weight.detach().numpy(), bias.detach().numpy())
        ctx.save_for_backward(planes, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor]:
        if torch.is_grad_enabled():
            raise PserError(
                "the kernel's convolution has a first derivative only, got create_graph=True: "
                "hand it planes that require a gradient"
            )
        planes, outputs = ctx.saved_tensors
        to_weight, to_bias = torch.empty(FILTERS, 9 * planes.shape[1]), torch.empty(FILTERS)
        convolve_backward(planes, outputs, gradient, to_weight, to_bias)
        return None, to_weight, to_bias


def cells(planes: Tensor) -> Tensor:
    """Planes as the kernel reads them: bytes, truth values or float32, in one piece."""
    return (planes if planes.dtype in (torch.bool, torch.uint8) else planes.to(torch.float32)).contiguous()


def convolve(planes: Tensor, weight: NDArray[Any], bias: NDArray[Any]) -> Tensor:
    """max(0, Wx + b) of every patch x."""
    outputs = torch.empty(len(planes), POSITIONS * FILTERS)
    _kernel.convolve(planes.numpy(), weight, bias, outputs.numpy(), *planes.shape[1:])
    return outputs


def convolve_backward(
    planes: Tensor, outputs: Tensor, gradient: Tensor, to_weight: Tensor, to_bias: Tensor
) -> None:
    """Overwrite ∂/∂W and ∂/∂b, given ∂/∂outputs."""
    slope = torch.ops.aten.threshold_backward(gradient, outputs, 0).contiguous()
    _kernel.convolve_gradient(planes.numpy(), slope.numpy(), to_weight.numpy(), *planes.shape[1:])
    torch.sum(slope.view(-1, FILTERS), 0, out=to_bias)
