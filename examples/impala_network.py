"""The residual network of IMPALA (Espeholt et al. 2018) for Atari, as a network of one's own.

$ pser train atari:Breakout --preset rainbow --network examples.impala_network:ImpalaNetwork

Any module will do that is made from the shape of an observation and the number of outputs. Frames come as float32
numbers 0..255, (batch, stack, height, width); what the outputs mean is for the agent's settings to say.
"""

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """x + two convolutions of it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, kernel_size=3, padding=1)
        self.second = nn.Conv2d(channels, channels, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width), the same out as in."""
        return x + self.second(torch.relu(self.first(torch.relu(x))))


class ImpalaNetwork(nn.Module):
    """Three times a convolution, a pooling that halves the picture, and two residual blocks; then 256 units."""

    def __init__(self, observation_shape: tuple[int, ...], num_outputs: int) -> None:
        super().__init__()
        channels, height, width = observation_shape
        layers: list[nn.Module] = []
        for wider in (16, 32, 32):
            layers += [nn.Conv2d(channels, wider, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1)]
            layers += [Residual(wider), Residual(wider)]
            channels, height, width = wider, -(-height // 2), -(-width // 2)
        self.body = nn.Sequential(*layers, nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear(channels * height * width, 256), nn.ReLU(), nn.Linear(256, num_outputs)
        )

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, num_outputs)."""
        return self.head(self.body(frames / 255))
