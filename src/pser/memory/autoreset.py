"""Noticing resets that were stored as steps: Gymnasium's vector environments reset in the step after an end."""

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

ALIKE = 3
"""So many episodes must begin like a stored reset, and none otherwise, before it is said."""

Rows = list[npt.NDArray[Any]]
"""An observation's fields."""


class End(NamedTuple):
    """How an episode ended."""

    final: Rows
    """The last observation."""
    far: float
    """How far the last step led."""


class AutoresetWatch:
    """Looks at how the first episodes begin.

    A stored reset leads from the last observation of the episode before to another one, further away than the last
    step led, without reward and without an end. (What goes on over an end, as after a lost life, moves on as before;
    and where episodes end at the observation that they began with, that is where the last step led.)
    """

    def __init__(self) -> None:
        self._ends: dict[int, End] = {}
        self._alike = 0
        self.waiting = False
        """Must it see the next step, because an episode has ended? (It must see every step that ends one.)"""

    def after(
        self,
        streams: Any,
        now: Rows,
        reward: npt.NDArray[np.float64],
        following: Rows,
        ended: npt.NDArray[np.bool_],
    ) -> Self | None:
        """The watch that goes on after this step, if it should."""
        for row, stream in enumerate(streams):
            end = self._ends.pop(int(stream), None)
            if end is None and not ended[row]:
                continue
            begins, leads = [part[row] for part in now], [part[row] for part in following]
            far = _distance(begins, leads)
            if end is not None:
                if not (
                    far > end.far and reward[row] == 0.0 and not ended[row] and _equal(begins, end.final)
                ):
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
                self._ends[int(stream)] = End([part.copy() for part in leads], far)
        self.waiting = bool(self._ends)
        return self


def _equal(one: Rows, other: Rows) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _distance(one: Rows, other: Rows) -> float:
    """Σ|a − b| over all numbers of an observation."""
    with np.errstate(all="ignore"):
        return sum(
            float(np.abs(np.subtract(a, b, dtype=np.result_type(a, np.float64))).sum())
            for a, b in zip(one, other, strict=True)
        )
