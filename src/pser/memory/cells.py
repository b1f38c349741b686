"""Priorities in files: the cells that changed since an earlier save, and a share of all of them in turn.

A file of cells holds some blocks whole and single cells from anywhere else. Read one after another, the oldest first,
the files of a save give the index as it was. Every save writes another share of the blocks whole, and so an old file
is needed no more once the younger ones hold every block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pser import _kernel
from pser.errors import PserError, require
from pser.files import archive
from pser.memory.prioritization import PSER, Prioritization
from pser.memory.saving import check_count

KIND = "ReplayMemoryCells"
SHARES = 16
"""In which the blocks are written whole, one with every save."""
LEAST_BLOCKS = 256
"""In a share: of a small memory all are written."""
MOST_CHANGED = 0.5
"""Of all bytes: if single cells take more, all are written."""
READ_BYTES = 1 << 20
"""Read at once, while others wait."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Cells:
    """A file of cells."""

    digest: int
    """The checksum of its checksums, and its name."""
    first: int
    last: int
    """It holds the blocks from the first to before the last whole."""

    def beside(self, head: Path) -> Path:
        """Its file, in the folder of a head that names it."""
        return named(head, self.digest)


def named(head: Path, digest: int) -> Path:
    """A file beside a head."""
    return head.with_name(f"{head.name}.{digest:08x}")


def blocks_in_use(capacity: int, streams: int, next_id: int) -> int:
    """Those that ever held a transition are the first so many."""
    cells = _kernel.used_cells(capacity, streams, min(next_id, capacity))
    return int(-(-cells // _kernel.FAN_OUT))


def shares_of(blocks: int) -> list[tuple[int, int]]:
    """All blocks, cut into shares."""
    size = max(LEAST_BLOCKS, -(-blocks // SHARES))
    return [(first, min(first + size, blocks)) for first in range(0, blocks, size)] or [(0, 0)]


def next_share(last: int, blocks: int) -> tuple[int, int]:
    """The blocks to be written whole after those before `last`."""
    first = last if last < blocks else 0
    return first, min(first + max(LEAST_BLOCKS, -(-blocks // SHARES)), blocks)


def still_needed(cells: Sequence[Cells], then: tuple[int, int], blocks: int) -> tuple[Cells, ...]:
    """Of the files of a save, those that hold what neither younger ones nor these blocks do."""
    held = np.zeros(blocks, bool)
    held[slice(*then)] = True
    needed: list[Cells] = []
    for each in reversed(cells):
        if held.all():
            break
        held[each.first : each.last] = True
        needed.append(each)
    return tuple(reversed(needed))


class Snapshot:
    """The index as it was when this was made, under its lock; nothing is copied until it is read."""

    def __init__(
        self, kernel: _kernel.Index, blocks: int, since: int | None, earlier: Sequence[Cells]
    ) -> None:
        """`since`: the moment that the earlier files are of."""
        self._kernel = kernel
        changed = kernel.changed_since(since) if since is not None and earlier else -1
        share = next_share(earlier[-1].last, blocks) if earlier else (0, blocks)
        few = 0 <= changed * kernel.cell_bytes < MOST_CHANGED * blocks * kernel.block_bytes
        self.linked = still_needed(earlier, share, blocks) if few else ()
        """The earlier files that are still needed."""
        if not self.linked:
            share, since = (0, blocks), -1
        self._shares = [share] if self.linked else shares_of(blocks)
        self._count = kernel.begin_snapshot(-1 if since is None else since, *share)
        self.moment = kernel.moment

    def files(self) -> Iterator[tuple[tuple[int, int], archive.Arrays]]:
        """Of each file the blocks that it holds and its arrays, read as they are asked for."""
        for first, last in self._shares:
            yield (first, last), {"blocks": self._blocks(last - first), "cells": self._cells()}

    def end(self) -> None:
        """It is needed no more."""
        self._kernel.end_snapshot()

    def _blocks(self, count: int) -> Bytes:
        out = np.empty(count * self._kernel.block_bytes, np.uint8)
        step = max(1, READ_BYTES // self._kernel.block_bytes) * self._kernel.block_bytes
        for start in range(0, len(out), step):
            self._kernel.read_blocks(out[start : start + step])
        return out

    def _cells(self) -> Bytes:
        size = self._kernel.cell_bytes
        out = np.empty(self._count * size, np.uint8)
        step = max(1, READ_BYTES // size) * size
        for start in range(0, len(out), step):
            self._kernel.read_cells(out[start : start + step])
        self._count = 0
        return out


def listed(cells: Sequence[Cells]) -> list[Any]:
    """Files as a head names them, ready for JSON."""
    return [[each.digest, each.first, each.last] for each in cells]


def from_listed(named: Any, blocks: int) -> list[Cells]:
    """The files that a head names; refused unless they hold every block."""
    require(
        isinstance(named, list) and len(named) <= 4096,
        "a save has files of cells",
        type(named),
        "use an older copy",
    )
    cells = [Cells(*(check_count(number, "cells") for number in each)) for each in named]
    held = np.zeros(blocks, bool)
    for each in cells:
        require(each.digest < 2**32, "a file has a checksum", each.digest, "use an older copy")
        require(
            each.first <= each.last <= blocks, "blocks are among those in use", each.last, "use an older copy"
        )
        held[each.first : each.last] = True
    require(bool(held.all()), "the files of cells hold every block", int(held.sum()), "use an older copy")
    return cells


class CellsReader:
    """The files of cells beside a head: all are checked before anything is allocated, then read into the index."""

    def __init__(self, head: Path, cells: Sequence[Cells], blocks: int, rule: Prioritization) -> None:
        self._head, self.files, self._blocks = head, tuple(cells), blocks
        keeps_parts = isinstance(rule, PSER) and rule.retain == "decayed"
        self._block_bytes = _kernel.BLOCK_BYTES + keeps_parts * 8 * _kernel.FAN_OUT
        self._cell_bytes = 32 + keeps_parts * 8
        for each in cells:
            with archive.reading(existing(head, each.beside(head)), KIND) as file:
                self._check(file, each)

    def fill(self, kernel: _kernel.Index) -> None:
        """Read them, the oldest first: a cell may have changed since."""
        for each in self.files:
            with archive.reading(existing(self._head, each.beside(self._head)), KIND) as file:
                self._check(file, each)
                read = {name: np.empty(size, np.uint8) for name, size in file.arrays}
                file.fill(read)
                if file.digest != each.digest:
                    raise file.damaged("it belongs to another save")
                kernel.put_blocks(each.first, read["blocks"])
                kernel.put_cells(self._blocks, read["cells"])

    def _check(self, file: archive.Reader, cells: Cells) -> None:
        """The file holds the blocks that the head says, and whole cells."""
        if file.content["blocks"] != [cells.first, cells.last]:
            raise file.damaged("it holds other blocks")
        size = dict(file.arrays).get("cells", 0)
        file.require({"blocks": (cells.last - cells.first) * self._block_bytes, "cells": size})
        if size % self._cell_bytes:
            raise file.damaged("it ends in the middle of a cell")


def existing(head: Path, path: Path) -> Path:
    """A file that a head names, if it is there."""
    if not path.is_file():
        raise PserError(f"{head} needs the file {path.name} beside it: copy both, or use an older copy")
    return path


def saved_cells(
    place: archive.Place, file: archive.Reader, blocks: int, rule: Prioritization
) -> CellsReader | None:
    """The files of cells that an open head names, checked; None if it holds the index itself."""
    if "cells" not in file.content:
        return None
    return CellsReader(archive.as_path(place), from_listed(file.content["cells"], blocks), blocks, rule)
