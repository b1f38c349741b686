"""Noisy networks (Fortunato et al. 2018): linear layers whose weights carry learned noise, to explore by."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pser.errors import PserError


def scaled(x: Tensor) -> Tensor:
    """f(x) = sgn(x)·√|x|, what turns two Gaussian vectors into a matrix of noise (Fortunato et al. 2018, Eq. 10)."""
    return x.sign() * x.abs().sqrt()


class NoisyLinear(nn.Module):
    """y = (μ + σ·ε)x + b with ε = f(ε_out)·f(ε_in)ᵀ, factorised (Fortunato et al. 2018, Eqs. 9–11).

    μ is the layer it takes the place of, whose initial weights are those of the paper; σ starts at σ0/√inputs.
    """

    def __init__(self, layer: nn.Linear, sigma: float) -> None:
        super().__init__()
        if layer.bias is None:
            raise PserError(f"a noisy layer needs a bias, got {layer}: give it one, or leave --noisy off")
        self.weight, self.bias = layer.weight, layer.bias
        start = sigma / math.sqrt(layer.in_features)
        self.weight_sigma = nn.Parameter(torch.full_like(layer.weight, start))
        self.bias_sigma = nn.Parameter(torch.full_like(layer.bias, start))
        self.noise: Noise | None = None
        """Set by the noise that the layer belongs to; without one, or while it is off, the layer is its mean."""
        self.input_noise, self.output_noise = torch.empty(0), torch.empty(0)
        """f(ε_in) and f(ε_out), as drawn last."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, with the noise drawn last if it is on."""
        if self.noise is None or not self.noise.on:
            return functional.linear(x, self.weight, self.bias)
        epsilon = torch.outer(self.output_noise, self.input_noise)
        weight = torch.addcmul(self.weight, self.weight_sigma, epsilon)
        return functional.linear(x, weight, torch.addcmul(self.bias, self.bias_sigma, self.output_noise))


class Noise:
    """The noise of all noisy layers of a network: drawn together, from a stream of its own, and switched on and off."""

    def __init__(self, network: nn.Module, generator: torch.Generator) -> None:
        layers = [module for module in network.modules() if isinstance(module, NoisyLinear)]
        sizes = [size for layer in layers for size in reversed(layer.weight.shape)]
        self.values = torch.zeros(sum(sizes), device=generator.device)
        parts = self.values.split_with_sizes(sizes)
        for number, layer in enumerate(layers):
            layer.noise, layer.input_noise, layer.output_noise = self, *parts[2 * number : 2 * number + 2]
        self.generator, self.on, self.draws = generator, False, 0

    def redraw(self) -> None:
        """New noise for every layer, which is on from here."""
        self.on = True
        self.draws += 1
        self.values.normal_(generator=self.generator)
        self.values.copy_(scaled(self.values))

    def set_stream(self, state: object) -> None:
        """Continue the random stream from its saved state."""
        own = self.generator.get_state()
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8 or state.shape != tuple(own.shape):
            raise PserError(
                f"a saved stream of noise must be {len(own):,} bytes of a generator on {self.generator.device}: "
                "resume where the run began, or start a new one"
            )
        try:
            self.generator.set_state(torch.from_numpy(state.copy()))
        except RuntimeError:
            raise PserError("the saved stream of noise is damaged: take an earlier checkpoint") from None


def make_noisy(network: nn.Module, sigma: float) -> None:
    """Put noise into every fully connected layer of a network, whoever wrote it."""
    found = [
        (parent, name, child)
        for parent in network.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear
    ]
    if not found:
        raise PserError(f"noise needs an nn.Linear, {type(network).__name__} has none: leave --noisy off")
    replaced: dict[int, NoisyLinear] = {}
    for parent, name, child in found:
        setattr(parent, name, replaced.setdefault(id(child), NoisyLinear(child, sigma)))
