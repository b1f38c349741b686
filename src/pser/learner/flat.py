"""A network's parameters, and their gradients, laid out in one tensor each.

Copying a network, zeroing its gradients, clipping them, stepping the optimizer and saving are then operations
on one tensor instead of one per layer.
"""

import torch
from torch import nn

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
        with torch.no_grad():
            for parameter, start in zip(parameters, starts, strict=False):
                stop, shape = start + parameter.numel(), parameter.shape
                view = self.values.data[start:stop].view(shape)
                view.copy_(parameter)
                parameter.data = view
                parameter.grad = self.gradients[start:stop].view(shape)

    @torch.no_grad()
    def copy_from(self, other: "FlatParameters") -> None:
        """Take the values of another network of the same shape."""
        self.values.copy_(other.values)

    def clip_gradients(self, max_norm: float) -> None:
        """Scale the gradients down to a Euclidean norm of at most `max_norm`."""
        norm = float(torch.linalg.vector_norm(self.gradients))
        if norm > max_norm:
            self.gradients.mul_(max_norm / norm)
