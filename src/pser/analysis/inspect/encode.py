"""Numbers for the page: few bytes each, compressed, as text that a script element can hold."""

import base64
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = 65_535


def text_of(data: bytes) -> str:
    """Compressed bytes as base64."""
    return base64.b64encode(data).decode("ascii")


class Block:
    """Columns in one compressed piece; `layout` tells the page where each lies."""

    def __init__(self) -> None:
        self.layout: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, name: str, values: NDArray[Any]) -> None:
        """A column as it is; numbers of several bytes are stored plane by plane, which compresses better."""
        if values.dtype == np.bool_:
            values = values.astype(np.uint8)
        self._append(name, {"type": values.dtype.str[1:]}, values)

    def add_logs(
        self,
        name: str,
        values: NDArray[Any],
        *,
        also: NDArray[Any] | None = None,
        like: NDArray[np.uint16] | None = None,
    ) -> NDArray[np.uint16]:
        """A column of numbers ≥ 0, kept to about four digits whatever their size: 0, or a level between the ends.

        `also` names numbers that the same levels must reach; `like` the levels of a column that is mostly the same,
        so that only the difference is stored.
        """
        low, high = log_ends(values if also is None else np.concatenate([values, also]))
        levels = log_levels(values, low, high)
        stored = levels if like is None else levels ^ like
        self._append(name, {"type": "log", "low": low, "high": high, "like": like is not None}, stored)
        return levels

    def text(self) -> str:
        """All of it, compressed."""
        return text_of(zlib.compress(b"".join(self._parts), 6))

    def _append(self, name: str, how: dict[str, Any], values: NDArray[Any]) -> None:
        planes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize).T
        self.layout[name] = {**how, "at": self._length, "bytes": int(values.dtype.itemsize)}
        self._parts.append(planes.tobytes())
        self._length += values.nbytes


def log_ends(values: NDArray[Any]) -> tuple[float, float]:
    """The logarithms of the least and the largest positive number."""
    positive = values[values > 0.0]
    return (math.log(positive.min()), math.log(positive.max())) if len(positive) else (0.0, 0.0)


def log_levels(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint16]:
    """0 for 0, else 1 … 65535 evenly over the logarithms."""
    levels = np.zeros(len(values), np.uint16)
    some = values > 0.0
    span = high - low
    share = (np.log(values[some]) - low) / span if span > 0.0 else np.zeros(some.sum())
    levels[some] = 1 + np.rint(np.clip(share, 0.0, 1.0) * (LEVELS - 1)).astype(np.uint16)
    return levels
