"""The losses that SB3's algorithms call, weighted by importance sampling; each tells the TD errors it saw.

They stand in for the library's functions of the same name while a model trains, so they take the same arguments.
"""

from collections.abc import Callable
from typing import Any

import torch as th
from torch.nn import functional

from pser.integrations.sb3.buffers import PrioritizedReplayBuffer
from pser.memory.prioritization import Uniform


class WeightedLosses:
    """One training call's losses: each is weighted by the batch drawn last, whose priorities are then updated.

    A batch's TD error is the mean of |δ| over the critics. With `pser.Uniform` all weights are 1, and the library's own
    functions are called, so that training gives the same bits.
    """

    def __init__(
        self,
        buffer: PrioritizedReplayBuffer,
        critics: int,
        quantile_huber_loss: Callable[..., th.Tensor] | None,
    ) -> None:
        self._buffer = buffer
        self._critics = critics
        self._stock_quantile_huber = quantile_huber_loss
        self._plain = isinstance(buffer.index.prioritization, Uniform)
        self._seen: list[th.Tensor] = []

    def mse_loss(self, current: th.Tensor, target: th.Tensor) -> th.Tensor:
        """Called once a critic (DDPG, TD3, SAC)."""
        self._tell(target - current, self._critics)
        if self._plain:
            return functional.mse_loss(current, target)
        return (self._weights() * functional.mse_loss(current, target, reduction="none")).mean()

    def smooth_l1_loss(self, current: th.Tensor, target: th.Tensor) -> th.Tensor:
        """Called once a batch (DQN)."""
        self._tell(target - current, 1)
        if self._plain:
            return functional.smooth_l1_loss(current, target)
        return (self._weights() * functional.smooth_l1_loss(current, target, reduction="none")).mean()

    def quantile_huber_loss(self, current: th.Tensor, target: th.Tensor, **options: Any) -> th.Tensor:
        """Called once a batch, with quantiles of every critic (QR-DQN, TQC); δ is between the distributions' means."""
        self._tell(target.mean(dim=-1) - current.mean(dim=-1), 1)
        if self._plain:
            assert self._stock_quantile_huber is not None
            return self._stock_quantile_huber(current, target, **options)
        return (self._weights()[:, 0] * quantile_huber(current, target, **options)).mean()

    def _weights(self) -> th.Tensor:
        assert self._buffer.drawn is not None
        return self._buffer.drawn.weights

    def _tell(self, deltas: th.Tensor, calls: int) -> None:
        self._seen.append(deltas.detach().abs().reshape(len(deltas), -1).mean(dim=1))
        if len(self._seen) == calls:
            assert self._buffer.drawn is not None
            errors = self._seen[0] if calls == 1 else th.stack(self._seen).mean(dim=0)
            self._seen.clear()
            self._buffer.update_priorities(self._buffer.drawn.ids, errors)


def quantile_huber(current: th.Tensor, target: th.Tensor, *, sum_over_quantiles: bool = True) -> th.Tensor:
    """Each row's quantile Huber loss (Dabney et al. 2018, Eq. 10), averaged over what is not summed.

    `current` is (batch, [critics,] quantiles), `target` (batch, [critics or 1,] target quantiles).
    """
    quantiles = current.shape[-1]
    midpoints = (th.arange(quantiles, device=current.device, dtype=current.dtype) + 0.5) / quantiles
    deltas = target.unsqueeze(-2) - current.unsqueeze(-1)  # (batch, [critics,] quantiles, target quantiles)
    share = (midpoints.unsqueeze(-1) - (deltas < 0).to(current.dtype)).abs()
    losses: th.Tensor = share * functional.smooth_l1_loss(deltas, th.zeros_like(deltas), reduction="none")
    if sum_over_quantiles:
        losses = losses.sum(dim=-2)
    return losses.flatten(start_dim=1).mean(dim=1)
