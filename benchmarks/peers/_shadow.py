"""Backward decay for a library whose stored priorities cannot be read: its user keeps a copy of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import ETA, RHO
from benchmarks.workload import Workload


class ShadowPriorities:
    """Raw priorities and episode positions kept beside the library, vectorised over the window."""

    def __init__(self, load: Workload, window: int) -> None:
        self._capacity = load.capacity
        self._priority = load.fill_errors.copy()
        self._depth = load.depth
        # Farthest first: where the episode's start cuts a window short, the strongest decay is written last.
        self._lags = np.arange(window, 0, -1)[:, None]
        self._decay = RHO**self._lags

    def update(
        self, index: NDArray[np.int64], fresh: NDArray[np.floating]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Positions and priorities to write for a batch whose fresh |TD errors| are `fresh`."""
        priority = self._priority
        own = np.maximum(fresh, ETA * priority[index])
        priority[index] = own
        targets = (index - np.minimum(self._lags, self._depth[index])) % self._capacity  # (window, batch)
        decayed = np.maximum(self._decay * fresh, priority[targets])
        priority[targets] = decayed
        return np.concatenate([index, targets.ravel()]), np.concatenate([own, decayed.ravel()])
