"""Noticing resets that were stored as steps: Gymnasium's vector environments reset in the step after an end."""

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

ALIKE = 3
"""So many episodes must begin like a stored reset, and none otherwise, before it is said."""


class AutoresetWatch:
    """Looks at how the first episodes begin.

    A stored reset leads from the last observation of the episode before to another one, without reward and without
    an end. (An episode that goes on after a lost life begins at such an observation too, but not time and again
    without reward.)
    """

    def __init__(self) -> None:
        self._final: dict[int, list[npt.NDArray[Any]]] = {}
        self._alike = 0

    @property
    def waiting(self) -> bool:
        """Must it see the next step, because an episode has ended? (It must see every step that ends one.)"""
        return bool(self._final)

    def after(
        self,
        streams: Any,
        now: list[npt.NDArray[Any]],
        reward: npt.NDArray[np.float64],
        following: list[npt.NDArray[Any]],
        ended: npt.NDArray[np.bool_],
    ) -> Self | None:
        """The watch that goes on after this step, if it should."""
        for row, stream in enumerate(streams):
            final = self._final.pop(int(stream), None)
            if final is not None:
                begins = [part[row] for part in now]
                moves = not _equal(begins, [part[row] for part in following])
                if not (moves and reward[row] == 0.0 and not ended[row] and _equal(begins, final)):
                    return None
                self._alike += 1
                if self._alike == ALIKE:
                    warnings.warn(
                        f"the first {ALIKE} episodes begin at the last observation of the one before, so resets seem "
                        "to be stored as steps: record vector environments with pser.collect.VectorRecorder",
                        stacklevel=3,
                    )
                    return None
            if ended[row]:
                self._final[int(stream)] = [part[row].copy() for part in following]
        return self


def _equal(one: list[npt.NDArray[Any]], other: list[npt.NDArray[Any]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
