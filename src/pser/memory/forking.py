"""Forks: a child inherits no index in the middle of another thread's call, and no lock that nobody will release."""

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

from pser import _kernel

if TYPE_CHECKING:
    from pser.memory.index import PriorityIndex

PATIENCE_MS = 1000
"""How long a thread that forks under the lock of one index waits for the others."""

_living: "WeakSet[PriorityIndex]" = WeakSet()
_shared: "WeakSet[PriorityIndex]" = WeakSet()
_held: "list[PriorityIndex]" = []
_lost: "list[PriorityIndex]" = []


def watch(index: "PriorityIndex") -> None:
    """From now on a fork waits until no other thread works on this index."""
    _living.add(index)


def share(index: "PriorityIndex") -> None:
    """Its transitions lie in a file: a child of a fork would write into its parent's, and is refused."""
    _shared.add(index)


def _before() -> None:
    indexes = list(_living)
    taken = _kernel.lock_all([index._kernel for index in indexes], PATIENCE_MS)
    for index, mine in zip(indexes, taken, strict=True):
        (_held if mine else _lost).append(index)


def _after() -> None:
    for index in _held:
        index._kernel.unlock()
    _held.clear()
    _lost.clear()


def _after_in_child() -> None:
    for index in _lost:
        index._kernel.lose()
    _after()
    for index in _shared:
        index._kernel.lose()


if hasattr(os, "register_at_fork"):  # systems that cannot fork have nothing to guard
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
