"""What every adapter needs: the library's version checked, β at a step, and an index as bytes."""

import io
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pser.errors import PserError
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import PER, PSER, Prioritization, Uniform

Beta = float | Callable[[int], float]
"""β of the importance-sampling weights: fixed, or a schedule over the transitions added so far (`pser.Anneal`)."""


def require_version(distribution: str, lowest: str, below: str) -> None:
    """The installed library is one this adapter was tested with."""
    remedy = f"pip install '{distribution}>={lowest},<{below}'"
    try:
        found = version(distribution)
    except PackageNotFoundError:
        raise ModuleNotFoundError(f"this adapter needs {distribution}: {remedy}") from None
    if not _release(lowest) <= _release(found) < _release(below):
        raise PserError(
            f"this adapter works with {distribution} from {lowest} to below {below}, got {found}: {remedy}"
        )


def _release(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: '2.9.2.post1' gives (2, 9, 2)."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in found.group().split(".")) if found else ()


def require_prioritization(prioritization: object, where: str) -> Prioritization:
    """The user chose how transitions are sampled; there is no silent default."""
    if not isinstance(prioritization, PSER | PER | Uniform):
        raise PserError(
            f"prioritization must be pser.PSER, pser.PER or pser.Uniform, got {prioritization!r}: give {where}"
        )
    return prioritization


def beta_at(beta: Beta, added: int) -> float:
    """β after so many transitions were added."""
    return float(beta(added) if callable(beta) else beta)


def ids_in_slots(index: PriorityIndex, slots: NDArray[np.int64], error: type[PserError]) -> NDArray[np.int64]:
    """The transitions now in these slots; a slot that holds none is refused, for libraries that name slots."""
    written = min(index.next_id, index.capacity)
    wrong = (slots < 0) | (slots >= written)
    if wrong.any():
        raise error(
            f"a slot must be from 0 to {written - 1}, got {slots[wrong][0]}: pass the indices that sample returned"
        )
    newest = index.next_id - 1
    ids: NDArray[np.int64] = newest - (newest - slots) % index.capacity
    return ids


def index_to_bytes(index: PriorityIndex) -> bytes:
    """The file `PriorityIndex.save` writes, for libraries that save through their own format."""
    stream = io.BytesIO()
    index.save(stream)
    return stream.getvalue()


def index_from_bytes(data: Any) -> PriorityIndex:
    """The index that was saved; damaged bytes are refused."""
    return PriorityIndex.load(io.BytesIO(bytes(data)))
