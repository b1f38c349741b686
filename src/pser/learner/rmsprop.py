"""RMSProp with ε inside the square root, as DQN's authors use it, or beside it, as PyTorch's own has it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pser import _kernel
from pser.learner.device import kernel_reads
from pser.learner.flat import FlatParameters


class RMSProp:
    """θ ← θ − v with v = momentum·v + lr·g / √(E[g²] − E[g]² + ε) (Graves 2013, Eqs. 38–41).

    Not centered: without E[g]². Not in the root: divided by √(E[g²] − E[g]²) + ε.
    """

    def __init__(
        self,
        flat: FlatParameters,
        *,
        lr: float,
        decay: float = 0.95,
        eps: float = 1e-5,
        eps_in_sqrt: bool = True,
        momentum: float = 0.0,
        centered: bool = True,
    ) -> None:
        self.flat, self.theta, self.gradient = flat, flat.values.detach(), flat.gradients
        self.lr, self.decay, self.eps, self.eps_in_sqrt, self.momentum = lr, decay, eps, eps_in_sqrt, momentum
        self.square = torch.zeros_like(self.theta)
        self.mean = torch.zeros_like(self.theta) if centered else None
        self.velocity = torch.zeros_like(self.theta) if momentum else None
        self._whole: list[Any] | None = None
        self._pieces: list[list[Any]] = []
        if kernel_reads(self.theta) and kernel_reads(self.gradient):
            tensors = (self.theta, self.gradient, self.square, self.mean, self.velocity)
            self._whole = [None if tensor is None else tensor.numpy() for tensor in tensors]
            self._pieces = [[_part(array, piece) for array in self._whole] for piece in flat.pieces]

    def step(self, loose: Sequence[Tensor] = ()) -> None:
        """Apply the gradients once; loose ones are read where they lie, if the kernel can read them there."""
        if loose and self._whole is not None and all(gradient.is_contiguous() for gradient in loose):
            for (theta, _, *averages), gradient in zip(self._pieces, loose, strict=True):
                self._in_kernel(theta, gradient.numpy(), *averages)
            return
        if loose:
            self.flat.collect(loose)
        if self._whole is None:
            self._many_passes()
        else:
            self._in_kernel(*self._whole)

    def _in_kernel(self, *arrays: Any) -> None:
        _kernel.rmsprop(
            *arrays,
            learning_rate=self.lr,
            decay=self.decay,
            eps=self.eps,
            eps_in_sqrt=self.eps_in_sqrt,
            momentum=self.momentum,
        )

    @torch.no_grad()
    def _many_passes(self) -> None:
        """The same update for any device and layout, by PyTorch's operations."""
        gradient, blend = self.gradient, 1 - self.decay
        spread = self.square.lerp_(gradient * gradient, blend)
        if self.mean is not None:
            self.mean.lerp_(gradient, blend)
            spread = (self.square - self.mean * self.mean).clamp_(min=0)  # rounding could make it negative
        root = (spread + self.eps).sqrt_() if self.eps_in_sqrt else spread.sqrt().add_(self.eps)
        step = self.lr * gradient / root
        if self.velocity is not None:
            step = self.velocity.mul_(self.momentum).add_(step)
        self.theta.sub_(step)

    def state(self) -> dict[str, Tensor]:
        """The running averages by name: the optimizer's own tensors, to be read or written in place."""
        averages = {"square": self.square, "mean": self.mean, "velocity": self.velocity}
        return {name: tensor for name, tensor in averages.items() if tensor is not None}


def _part(array: Any, piece: slice) -> Any:
    return None if array is None else array[piece]
