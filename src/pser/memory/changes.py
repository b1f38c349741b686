"""Saving what is new since an earlier save, while the memory is used on.

A save begins with a snapshot, under the lock: what is unfinished is copied, and which priorities are wanted is noted
(`cells`; one that changes before it is read is put aside first). Rows and frames are not copied: nothing changes them
until their place is taken, so they are written from the memory itself, oldest first, and an `add` that would take the
place of one not yet written waits for it. What would be taken soon is copied with the snapshot, up to about
`COPIED_BYTES`.
"""

import contextlib
import itertools
import math
import os
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pser.files import archive
from pser.files.atomic import sync_folder
from pser.memory import cells, saving
from pser.memory.cells import named
from pser.memory.columns import LEAST_RECORDS
from pser.memory.parts import (
    KIND,
    ROWS,
    Part,
    Piece,
    Saved,
    Spans,
    Times,
    clock_lengths,
    head_layout,
    listed,
    pieces_of,
    split,
    views,
)
from pser.memory.persistence import content_of
from pser.memory.storage import Arrays, Layout

if TYPE_CHECKING:
    from pser.memory.replay import ReplayMemory

COPIED_BYTES = 8 << 20
"""Of rows and frames copied with a snapshot; the least size of a part, if there is more than one."""
WHOLE_PARTS = 32
"""That a save of everything is cut into: a part is dropped once nothing of it is in memory any more."""
KEPT_PARTS = 128
"""Of a chain of saves; then everything is written anew."""


class Plan(NamedTuple):
    """A part to be written."""

    spans: Spans
    pieces: list[Piece]
    content: Arrays
    limits: Times
    """What each clock may show before something of the part is overwritten."""


class Saving:
    """One save, from its snapshot (taken when it is made) to its end."""

    def __init__(self, memory: "ReplayMemory", path: Path, since: Saved | None) -> None:
        self._memory, self._path = memory, path
        self._moved = threading.Condition()
        self._is_over = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._saved: Saved | None = None
        with memory._index.locked():
            storage = memory._storage
            self._layout, self._arrays = storage.layout, storage.arrays
            counters = storage.counters()
            self._times = {
                clock: memory._index.next_id if clock == ROWS else counters[clock]
                for clock in clock_lengths(self._layout)
            }
            self._content = content_of(memory, counters)
            self._head = {name: self._arrays[name].copy() for name in head_layout(self._layout)}
            self._shown = {clock: _shown_by_a_row(self._layout, clock) for clock in self._times}
            self._linked = self._usable(since)
            self._since = since if self._linked else None
            self._plans = self._planned()
            self._left = len(self._plans)
            self._cells = self._snapshot()
            memory._saving = self

    def _snapshot(self) -> cells.Snapshot:
        index, since = self._memory._index, self._since
        blocks = cells.blocks_in_use(index.capacity, index.num_streams, index.next_id)
        if since is None or not all(each.beside(since.path).is_file() for each in since.cells):
            return cells.Snapshot(index._kernel, blocks, -1, ())
        return cells.Snapshot(index._kernel, blocks, since.moment, since.cells)

    def _usable(self, since: Saved | None) -> tuple[Part, ...]:
        """The parts of the earlier save that are still needed; none if it cannot be built on."""
        if since is None or since.history is not self._memory._history or len(since.parts) >= KEPT_PARTS:
            return ()
        lengths = clock_lengths(self._layout)
        if any(
            not self._times[clock] - lengths[clock] <= since.times[clock] <= self._times[clock]
            for clock in lengths
        ):
            return ()
        oldest = {clock: self._times[clock] - lengths[clock] for clock in lengths}
        for stored in self._layout.values():
            if stored.newest is not None:
                newest, clock = self._head[stored.newest[0]], stored.newest[1]
                oldest[clock] = int(newest[newest >= 0].min(initial=oldest[clock]))
        parts = tuple(
            part for part in since.parts if any(stop > oldest[c] for c, (_, stop) in part.spans.items())
        )
        return parts if all(part.beside(since.path).is_file() for part in parts) else ()

    def _planned(self) -> list[Plan]:
        lengths = clock_lengths(self._layout)
        spans = {}
        for clock, now in self._times.items():
            spans[clock] = (self._since.times[clock] if self._since else max(0, now - lengths[clock]), now)
        plans: list[Plan] = []
        if all(start == stop for start, stop in spans.values()):
            return plans
        for part in split(self._layout, spans, self._head, COPIED_BYTES, WHOLE_PARTS):
            is_all = self._since is None and not plans
            pieces = pieces_of(self._layout, part, self._head, and_before=is_all)
            pieces = _apart_from_newest(self._layout, pieces, self._head, self._times)
            limits = self._limits(part, and_before=is_all)
            soon = any(limits[clock] - self._times[clock] <= lengths[clock] // 8 for clock in limits)
            content = views(self._arrays, pieces)
            if soon and not plans:
                content = {name: array.copy() for name, array in content.items()}
                limits = {}
            else:
                for piece in pieces:
                    if _is_newest(self._layout, piece, self._head, self._times):  # it is still written to
                        content[piece.label] = content[piece.label].copy()
            plans.append(Plan(part, pieces, content, limits))
        return plans

    def _limits(self, spans: Spans, and_before: bool) -> Times:
        """What each clock may show before a place of the part is taken again."""
        lengths = clock_lengths(self._layout)
        limits = {clock: start + lengths[clock] for clock, (start, stop) in spans.items() if start < stop}
        for stored in self._layout.values():
            if stored.newest is None:
                continue
            # Entries are freed oldest first, one for each that is taken, and each holds so many ids at least.
            newest, clock = self._head[stored.newest[0]], stored.newest[1]
            before = 0 if and_before else int(((newest >= 0) & (newest < spans[clock][0])).sum())
            limit = self._times[clock] + LEAST_RECORDS * (before - 4) - 2 * self._reach(1)[clock]
            limits[clock] = min(limits.get(clock, limit), limit)
        return limits

    def _reach(self, rows: int) -> Times:
        """How far one `add` of so many rows may move each clock, with ample room to spare."""
        completed = rows + self._memory.num_envs * (self._memory.n_step + 1)
        return {clock: 8 * completed * (1 + shown) for clock, shown in self._shown.items()}

    def make_way(self, rows: int) -> None:
        """Wait until an `add` of so many rows cannot touch what is not yet written."""
        with self._moved:
            while not self.has_room(rows):
                self._moved.wait()

    def has_room(self, rows: int) -> bool:
        """Can an `add` of so many rows touch nothing that is not yet written? Certain under the index's lock alone."""
        waiting = self._plans[len(self._plans) - self._left :]
        for clock, far in self._reach(rows).items():
            now = self._memory._index.next_id if clock == ROWS else int(self._arrays[clock][0])
            if any(now + far > plan.limits[clock] for plan in waiting if clock in plan.limits):
                return False
        return True

    def in_background(self) -> None:
        """Write it in a thread of its own."""
        self._thread = threading.Thread(target=self._write_noting_errors, name="pser-save")
        self._thread.start()

    def _write_noting_errors(self) -> None:
        try:
            self.write()
        except BaseException as error:
            self._error = error

    def finished(self) -> None:
        """Wait for its end, well or not: whoever began it is told how it went."""
        with self._moved:
            while not self._is_over:
                self._moved.wait()

    def wait(self) -> Saved:
        """The save, once it is complete; what went wrong with it is raised here."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._saved is not None
        return self._saved

    def write(self) -> Saved:
        """Write all of it: the parts, then the head that names them."""
        try:
            parts, held = [*self._linked], [*self._cells.linked]
            for digest in [each.digest for each in parts] + [each.digest for each in held]:
                assert self._since is not None
                _link(named(self._since.path, digest), named(self._path, digest))
            for plan in self._plans:
                parts.append(self._write_part(plan))
                with self._moved:
                    self._left -= 1
                    self._moved.notify_all()
            # Last: reading them takes the index's lock, whose holder may be waiting for a part to be written.
            for blocks, arrays in self._cells.files():
                digest = self._write_file(cells.KIND, {"blocks": list(blocks)}, arrays)
                held.append(cells.Cells(digest, *blocks))
            sync_folder(self._path.parent)
            content = {**self._content, "parts": listed(parts), "cells": cells.listed(held)}
            archive.write(self._path, saving.KIND, content, self._head)
            self._remove_others({each.digest for each in parts} | {each.digest for each in held})
            self._saved = Saved(
                self._path, self._times, tuple(parts), self._memory._history, tuple(held), self._cells.moment
            )
            self._memory._saved = self._saved
        finally:
            self.abandon()
        return self._saved

    def abandon(self) -> None:
        """Nobody has to wait for it any more."""
        with self._moved:
            self._left = 0
            self._moved.notify_all()
        if not self._is_over:
            self._cells.end()  # takes the index's lock, whose holder may have been waiting for a part to be written
        with self._moved:
            self._is_over = True
            if self._memory._saving is self:
                self._memory._saving = None
            self._moved.notify_all()

    def _write_part(self, plan: Plan) -> Part:
        spans = {clock: list(span) for clock, span in plan.spans.items()}
        content = {"spans": spans, "pieces": [list(piece) for piece in plan.pieces]}
        return Part(self._write_file(KIND, content, plan.content), plan.spans)

    def _write_file(self, kind: str, content: dict[str, Any], arrays: Arrays) -> int:
        """A file beside the head, named by its checksum, which is returned."""
        temporary = self._path.with_name(f"{self._path.name}.new")
        digest = archive.write(temporary, kind, content, arrays)
        os.replace(temporary, named(self._path, digest))
        return digest

    def _remove_others(self, digests: set[int]) -> None:
        """Delete what earlier saves to this path left beside it."""
        kept = {named(self._path, digest).name for digest in digests}
        pattern = re.compile(rf"{re.escape(self._path.name)}\.([0-9a-f]{{8}}|new)")
        for entry in list(os.scandir(self._path.parent)):
            if pattern.fullmatch(entry.name) and entry.name not in kept:
                Path(entry.path).unlink(missing_ok=True)


def _shown_by_a_row(layout: Layout, clock: str) -> int:
    """How many frames of a ring a transition shows."""
    folder = clock.rpartition("/")[0]
    rows = [s for name, s in layout.items() if folder and name.startswith(f"{folder}/") and s.used == ROWS]
    return max((math.prod(stored.shape[1:]) for stored in rows), default=0)


def _apart_from_newest(layout: Layout, pieces: list[Piece], arrays: Arrays, times: Times) -> list[Piece]:
    """The same pieces, with the entry that is still written to as one of its own."""
    out = []
    for piece in pieces:
        stored = layout[piece.name]
        cuts = [piece.start, piece.stop]
        if stored.newest is not None:
            newest = np.flatnonzero(
                arrays[stored.newest[0]][piece.start : piece.stop] == times[stored.newest[1]] - 1
            )
            cuts += [piece.start + int(place) + side for place in newest for side in (0, 1)]
        cuts = sorted(set(cuts))
        out += [Piece(piece.name, a, b) for a, b in itertools.pairwise(cuts)]
    return out


def _is_newest(layout: Layout, piece: Piece, arrays: Arrays, times: Times) -> bool:
    stored = layout[piece.name]
    return stored.newest is not None and arrays[stored.newest[0]][piece.start] == times[stored.newest[1]] - 1


def _link(existing: Path, wanted: Path) -> None:
    """Another name for a file; where there are no links, a copy."""
    if wanted.exists():
        return
    try:
        os.link(existing, wanted)
    except OSError:
        temporary = wanted.with_name(f"{wanted.name}.copy")
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        with open(existing, "rb") as source, open(temporary, "wb") as target:
            shutil.copyfileobj(source, target, archive.SLICE_BYTES)
            target.flush()
            os.fsync(target.fileno())
        os.replace(temporary, wanted)
