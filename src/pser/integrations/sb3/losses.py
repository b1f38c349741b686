"""The losses that SB3's algorithms call, weighted by importance sampling; each tells the TD errors it saw.

They stand in for the library's functions of the same name while a model trains, so they take the same arguments.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from pser.integrations.sb3.buffers import PrioritizedReplayBuffer
from pser.memory.prioritization import Uniform


class WeightedLosses:
    """A model's losses: each is weighted by the batch drawn last, whose priorities are then updated.

    A batch's TD error is the mean of |δ| over the critics. With `pser.Uniform` all weights are 1, and the library's own
    functions are called, so that training gives the same bits.
    """

    _buffer: PrioritizedReplayBuffer

    def __init__(self, quantile_huber_loss: Callable[..., th.Tensor] | None) -> None:
        self._stock_quantile_huber = quantile_huber_loss
        self._critics = 1
        self._plain = True
        self._seen: list[NDArray[Any]] = []

    @contextlib.contextmanager
    def training(self, buffer: PrioritizedReplayBuffer, critics: int) -> Iterator[None]:
        """Losses of this buffer's batches, for so many critics, from here on; the buffer is let go afterwards."""
        self._buffer, self._critics = buffer, critics
        self._plain = isinstance(buffer.index.prioritization, Uniform)
        self._seen.clear()
        try:
            yield
        finally:
            del self._buffer

    def mse_loss(self, current: th.Tensor, target: th.Tensor) -> th.Tensor:
        """Called once a critic (DDPG, TD3, SAC)."""
        self._tell(target, current, self._critics)
        if self._plain:
            return functional.mse_loss(current, target)
        return self._weighted(functional.mse_loss(current, target, reduction="none"))

    def smooth_l1_loss(self, current: th.Tensor, target: th.Tensor) -> th.Tensor:
        """Called once a batch (DQN)."""
        self._tell(target, current, 1)
        if self._plain:
            return functional.smooth_l1_loss(current, target)
        return self._weighted(functional.smooth_l1_loss(current, target, reduction="none"))

    def quantile_huber_loss(self, current: th.Tensor, target: th.Tensor, **options: Any) -> th.Tensor:
        """Called once a batch, with quantiles of every critic (QR-DQN, TQC); δ is between the distributions' means."""
        self._tell(target.mean(dim=-1), current.mean(dim=-1), 1)
        if self._plain:
            assert self._stock_quantile_huber is not None
            return self._stock_quantile_huber(current, target, **options)
        return self._weighted(quantile_huber(current, target, **options))

    def _weighted(self, losses: th.Tensor) -> th.Tensor:
        """Σ w_i·L_i / n, of each row's loss."""
        assert self._buffer.drawn is not None
        weights, n = self._buffer.drawn.weights.view(-1), len(losses)
        if n & (n - 1):
            return th.dot(weights, losses.view(-1)) / n
        # A power of two divides exactly, so it may do so first: no gradient passes through the division then.
        return th.dot(weights / n, losses.view(-1))

    def _tell(self, target: th.Tensor, current: th.Tensor, calls: int) -> None:
        deltas = target.detach().cpu().numpy() - current.detach().cpu().numpy()
        self._seen.append(deltas.reshape(len(deltas), -1))  # (batch, critics of this call)
        if len(self._seen) == calls:
            assert self._buffer.drawn is not None
            critics = self._seen[0] if calls == 1 else np.concatenate(self._seen, axis=1)
            self._seen.clear()
            errors = critics if critics.shape[1] == 1 else np.abs(critics).mean(axis=1)
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
