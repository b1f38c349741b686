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
        self.parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]

    def forward(self, observation: Tensor) -> Tensor:
        """The network's outputs."""
        outputs: Tensor = self.network(observation)
        return outputs

    def forward_saving(self, observation: Tensor) -> tuple[Tensor, Any]:
        """The network's outputs, and what `backward` needs to know about them."""
        with torch.inference_mode(False), torch.enable_grad():
            outputs: Tensor = self.network(observation)
        return outputs.detach(), outputs

    def backward(self, saved: Any, gradient: Tensor) -> Sequence[Tensor]:
        """The gradient of every parameter, given ∂/∂outputs; the parameters' `.grad` stay as they are."""
        with torch.inference_mode(False):
            return torch.autograd.grad(saved, self.parameters, gradient.clone(), materialize_grads=True)


Path = FastPath | AutogradPath
"""Both forms; neither knows what the outputs mean. `backward` returns the gradients that it left outside of `.grad`."""


def path_of(network: nn.Module) -> Path:
    """The way through a network whose parameters lie where they will stay."""
    return fast_path(network) or AutogradPath(network)
