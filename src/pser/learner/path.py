"""How a network is asked and taught: by a fast path where one applies, otherwise by autograd."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pser.learner.fast_path import FastPath, fast_path


class AutogradPath:
    """Any network, by autograd, which lays the gradients where it likes."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.parameters = tuple(parameter for parameter in network.parameters() if parameter.requires_grad)

    def forward(self, observation: Tensor) -> Tensor:
        """The network's outputs."""
        outputs: Tensor = self.network(observation)
        return outputs

    def forward_saving(self, observation: Tensor) -> tuple[Tensor, Any]:
        """The network's outputs, and what `backward` needs to know about them."""
        with torch.inference_mode(False):  # which records for autograd again
            outputs: Tensor = self.network(observation)
        return outputs.detach(), outputs

    def backward(self, saved: Any, gradient: Tensor) -> Sequence[Tensor]:
        """The gradient of every parameter, given ∂/∂outputs; the parameters' `.grad` stay as they are."""
        with torch.inference_mode(False):
            found = zip(self.parameters, _gradients(saved, self.parameters, gradient.clone()), strict=True)
            return [torch.zeros_like(unused) if given is None else given for unused, given in found]


def _gradients(outputs: Tensor, parameters: tuple[Tensor, ...], gradient: Tensor) -> Sequence[Tensor | None]:
    """What `torch.autograd.grad(outputs, parameters, gradient, allow_unused=True)` gives, by the call it ends in.

    On the way there it imports modules and compares shapes, a thirtieth of an update on MinAtar, for errors that
    cannot occur here. The call is none that PyTorch promises: where there is no such thing, the detour is made.
    """
    engine = getattr(torch.autograd.Variable, "_execution_engine", None)
    if engine is None:
        return torch.autograd.grad(outputs, parameters, gradient, allow_unused=True)
    found: Sequence[Tensor | None] = engine.run_backward(
        (outputs,), (gradient,), False, False, parameters, allow_unreachable=True, accumulate_grad=False
    )
    return found


Path = FastPath | AutogradPath
"""Both forms; neither knows what the outputs mean. `backward` returns the gradients that it left outside of `.grad`."""


def path_of(network: nn.Module) -> Path:
    """The way through a network whose parameters lie where they will stay."""
    return fast_path(network) or AutogradPath(network)
