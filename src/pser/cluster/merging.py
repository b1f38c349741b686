"""Rows of several batches put together as one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pser.memory.arrays import Ints
from pser.memory.batch import Batch


def merged_batch(parts: Sequence[tuple[Ints, Batch]], size: int) -> Batch:
    """A batch of `size` rows; each part comes with the rows it fills, which together are all of them."""
    rows = [at for at, _ in parts]
    return Batch(
        *(_merged(rows, values, size) for values in zip(*(batch for _, batch in parts), strict=True))
    )


def _merged(rows: Sequence[Ints], values: Sequence[Any], size: int) -> Any:
    if isinstance(values[0], dict):
        return {name: _merged(rows, [value[name] for value in values], size) for name in values[0]}
    whole = np.empty((size, *values[0].shape[1:]), values[0].dtype)
    for at, value in zip(rows, values, strict=True):
        whole[at] = value
    return whole
