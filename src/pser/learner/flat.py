"""A network's parameters, and their gradients, laid out in one tensor each.

Copying a network, zeroing its gradients, clipping them, stepping the optimizer and saving are then operations
on one tensor instead of one per layer.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pser.errors import PserError

ALIGNMENT = 16
"""Parameters start at multiples of 16 floats (64 bytes), as if each had been allocated by itself."""


class FlatParameters:
    """Owns the storage of `network`'s float32 parameters; the network keeps views of it."""

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        network.to(device)
        parameters = list(network.parameters())
        starts = [0]
        for parameter in parameters:
            starts.append(-(-(starts[-1] + parameter.numel()) // ALIGNMENT) * ALIGNMENT)
        self.values = nn.Parameter(torch.zeros(starts[-1], device=device))
        """All parameters; the tensor an optimizer is given."""
        self.gradients = torch.zeros_like(self.values, requires_grad=False)
        """All gradients; `backward` adds into them."""
        self.values.grad = self.gradients
        self.buffers = [buffer for name, buffer in network.named_buffers() if name in network.state_dict()]
        """What the network remembers besides (running averages of a normalisation)."""
        self.pieces: list[slice] = []
        """Where each parameter that learns lies, in their order."""
        self._gradient_views: list[Tensor] = []
        with torch.no_grad():
            for parameter, start in zip(parameters, starts, strict=False):
                stop, shape = start + parameter.numel(), parameter.shape
                view = self.values.data[start:stop].view(shape)
                view.copy_(parameter)
                parameter.data = view
                parameter.grad = self.gradients[start:stop].view(shape)
                if parameter.requires_grad:
                    self.pieces.append(slice(start, stop))
                    self._gradient_views.append(parameter.grad)

    @torch.no_grad()
    def collect(self, loose: Sequence[Tensor]) -> None:
        """Put gradients that lie elsewhere, one for each parameter that learns, side by side."""
        torch._foreach_copy_(self._gradient_views, list(loose))

    @torch.no_grad()
    def copy_from(self, other: "FlatParameters") -> None:
        """Take the values of another network of the same shape."""
        self.values.copy_(other.values)
        for mine, theirs in zip(self.buffers, other.buffers, strict=True):
            mine.copy_(theirs)

    @torch.no_grad()
    def clip_gradients(self, max_norm: float) -> None:
        """Scale the gradients down to a Euclidean norm of at most `max_norm`."""
        norm = torch.linalg.vector_norm(self.gradients)
        self.gradients.mul_((max_norm / norm).clamp_(max=1.0))  # no norm, no limit: 1 where it is zero

    def get_state(self) -> NDArray[np.float32]:
        """A copy of all that the network has learned."""
        parts = [self.values.detach(), *(buffer.to(torch.float32).flatten() for buffer in self.buffers)]
        whole: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        return whole

    def check(self, state: object) -> list[Tensor]:
        """The parts of what `get_state` gave; refused unless it is of a network of the same shape."""
        sizes = [self.values.numel(), *(buffer.numel() for buffer in self.buffers)]
        return list(checked(state, (sum(sizes),), "saved weights").split_with_sizes(sizes))

    @torch.no_grad()
    def set_state(self, state: object) -> None:
        """Take what `get_state` of a network of the same shape gave."""
        values, *buffers = self.check(state)
        self.values.copy_(values)
        for buffer, value in zip(self.buffers, buffers, strict=True):
            buffer.copy_(value.view(buffer.shape))


def checked(array: object, shape: tuple[int, ...], what: str) -> Tensor:
    """The array as a tensor, if it is of float32, finite and of the shape that is needed."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float32:
        got = f"{array.size:,} of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        size = int(np.prod(shape))
        raise PserError(
            f"{what} must fit the network of their run's settings ({size:,} numbers of float32), got {got}: "
            "restore the manifest that belongs to them"
        )
    if not np.isfinite(array).all():
        raise PserError(f"{what} must be finite numbers, got some that are not: take an earlier file")
    return torch.from_numpy(array)
