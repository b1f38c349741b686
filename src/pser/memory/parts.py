"""A memory in parts: what was added to it, in files that are written once and linked by every later save.

Rows and frames are written once, in the order of their ids, and stay until their place is taken again. A part holds
those of a span of ids; a save is a head (open episodes, random generator) that names the parts which cover what the
memory holds, and the files of its priorities (`cells`).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pser.errors import require
from pser.files import archive
from pser.memory.cells import Cells, existing, named
from pser.memory.columns import Stored
from pser.memory.saving import check_count
from pser.memory.storage import Arrays, Layout

KIND = "ReplayMemoryPart"
ROWS = "rows"
"""The clock of transitions; that of a ring of frames is named by its counter."""
MOST_PARTS = 4096
"""That a file may name."""

Times = dict[str, int]
"""What each clock shows: how many ids there ever were."""
Spans = dict[str, tuple[int, int]]
"""From which id to before which, of each clock."""


class Piece(NamedTuple):
    """Entries of one array that lie side by side."""

    name: str
    start: int
    stop: int

    @property
    def label(self) -> str:
        """Its name in a file."""
        return f"{self.name}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class Part:
    """A file of a save."""

    digest: int
    """The checksum of its checksums, and its name."""
    spans: Spans

    def beside(self, head: Path) -> Path:
        """Its file, in the folder of a head that names it."""
        return named(head, self.digest)


def clock_of(stored: Stored) -> str:
    """What the entries of an array are counted by; nothing for those that change anywhere, which a head holds."""
    if stored.newest is not None:
        return stored.newest[1]
    return "" if stored.used == "all" else stored.used


def head_layout(layout: Layout) -> Layout:
    """The arrays that are written anew with every save."""
    return {name: stored for name, stored in layout.items() if not clock_of(stored)}


def clock_lengths(layout: Layout) -> dict[str, int]:
    """How many ids of each clock are kept: the length of its ring."""
    return {
        clock_of(stored): stored.shape[0]
        for stored in layout.values()
        if clock_of(stored) and stored.newest is None
    }


def entry_bytes(stored: Stored) -> int:
    """Of one entry of an array."""
    return int(math.prod(stored.shape[1:]) * np.dtype(stored.dtype).itemsize)


def pieces_of(layout: Layout, spans: Spans, arrays: Arrays, *, and_before: bool = False) -> list[Piece]:
    """Where the entries of these ids lie, array by array; of those in another order also with all that are older."""
    pieces = []
    for name, stored in layout.items():
        clock = clock_of(stored)
        if not clock:
            continue
        start, stop = spans[clock]
        if stored.newest is None:
            runs = _ring_runs(start, stop, stored.shape[0])
        else:
            newest = arrays[stored.newest[0]]
            runs = _runs(np.flatnonzero((newest >= (0 if and_before else start)) & (newest < stop)))
        pieces += [Piece(name, *run) for run in runs]
    return pieces


def _ring_runs(start: int, stop: int, length: int) -> list[tuple[int, int]]:
    if start == stop:
        return []
    first = start % length
    last = first + stop - start
    return [(first, last)] if last <= length else [(first, length), (0, last - length)]


def _runs(places: "np.ndarray[Any, Any]") -> list[tuple[int, int]]:
    """Places in order as runs of neighbours."""
    if not places.size:
        return []
    breaks = np.flatnonzero(np.diff(places) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(places, breaks)]


def piece_bytes(layout: Layout, pieces: Sequence[Piece]) -> dict[str, int]:
    """How large each piece is in a file."""
    return {piece.label: (piece.stop - piece.start) * entry_bytes(layout[piece.name]) for piece in pieces}


def views(arrays: Arrays, pieces: Sequence[Piece]) -> Arrays:
    """The pieces in place, by their names in a file."""
    return {piece.label: arrays[piece.name][piece.start : piece.stop] for piece in pieces}


def split(layout: Layout, spans: Spans, arrays: Arrays, least_bytes: int, most_parts: int) -> list[Spans]:
    """The spans cut into pieces of at least so many bytes, about, the oldest first; none above one in `most_parts`."""
    total = sum(piece_bytes(layout, pieces_of(layout, spans, arrays)).values())
    # The first is the smallest, for it may have to be copied; each is written while what was before it is taken again.
    ends = [least_bytes]
    size = least_bytes
    while ends[-1] < total:
        size = min(2 * size, max(least_bytes, total // most_parts))
        ends.append(ends[-1] + size)
    edges = [0.0, *(end / total for end in ends[:-1] if total - end >= least_bytes), 1.0]
    cut = []
    for here, there in itertools.pairwise(edges):
        part = {c: (a + int(here * (b - a)), a + int(there * (b - a))) for c, (a, b) in spans.items()}
        cut.append(part)
    return cut


def listed(parts: Sequence[Part]) -> list[Any]:
    """Parts as a head names them, ready for JSON."""
    return [[part.digest, {clock: list(span) for clock, span in part.spans.items()}] for part in parts]


def from_listed(named: Any, layout: Layout, times: Times) -> list[Part]:
    """The parts that a head names; refused unless they follow each other and cover all there was at these times."""
    require(
        isinstance(named, list) and len(named) <= MOST_PARTS,
        "a save has parts",
        type(named),
        "use an older copy",
    )
    clocks = clock_lengths(layout)
    parts = []
    at: Times | None = None
    for digest, spans in named:
        require(
            type(digest) is int and 0 <= digest < 2**32, "a part has a checksum", digest, "use an older copy"
        )
        require(
            sorted(spans) == sorted(clocks), "a part knows every clock", sorted(spans), "use an older copy"
        )
        part = Part(digest, {clock: _span(spans[clock], clock) for clock in clocks})
        for clock, (start, _) in part.spans.items():
            if at is None:
                wanted = max(0, times[clock] - clocks[clock])
                require(start <= wanted, f"the parts begin with {clock} {wanted}", start, "use an older copy")
            else:
                require(
                    start == at[clock], f"the parts follow each other in {clock}", start, "use an older copy"
                )
        at = {clock: stop for clock, (_, stop) in part.spans.items()}
        parts.append(part)
    ended = at if at is not None else dict.fromkeys(clocks, 0)
    require(
        ended == {clock: times[clock] for clock in clocks},
        "the parts end with the save",
        ended,
        "use an older copy",
    )
    return parts


def _span(value: Any, clock: str) -> tuple[int, int]:
    start, stop = (check_count(number, clock) for number in value)
    require(start <= stop, "a span goes forward", value, "use an older copy")
    return start, stop


def check_part(file: archive.Reader, part: Part, layout: Layout, counters: dict[str, int]) -> list[Piece]:
    """The pieces that an open part holds; refused unless they are those of its spans, and of their sizes."""
    if file.content["spans"] != {clock: list(span) for clock, span in part.spans.items()}:
        raise file.damaged("it is of another span")
    pieces = [Piece(str(name), start, stop) for name, start, stop in file.content["pieces"]]
    lengths = clock_lengths(layout)
    short = {clock: (max(start, stop - lengths[clock]), stop) for clock, (start, stop) in part.spans.items()}
    if short != part.spans:
        raise file.damaged("it holds more than there was room for")
    ordered = {name: stored for name, stored in layout.items() if stored.newest is None}
    if [piece for piece in pieces if piece.name in ordered] != pieces_of(ordered, part.spans, {}):
        raise file.damaged("its pieces are not those of its span")
    for piece in pieces:
        stored = layout[piece.name]
        whole = type(piece.start) is int and type(piece.stop) is int
        if not whole or not 0 <= piece.start < piece.stop <= stored.shape[0]:
            raise file.damaged("a piece lies outside of its array")
        if stored.newest is not None and piece.stop > counters[stored.used]:
            raise file.damaged("a piece lies where nothing was written")
    file.require(piece_bytes(layout, pieces))
    return pieces


@dataclass
class Saved:
    """A save that is complete."""

    path: Path
    """Of its head; whoever moves the files corrects it."""
    times: Times
    parts: tuple[Part, ...]
    history: object
    """Of the memory that was saved: no other can go on from it."""
    cells: tuple[Cells, ...] = ()
    moment: int = -1
    """Of the index, which knows what changed since its last two."""


class PartsReader:
    """The parts beside a head: all are checked before anything is allocated, then read into place."""

    def __init__(
        self, head: Path, parts: Sequence[Part], layout: Layout, times: Times, counters: dict[str, int]
    ) -> None:
        self._head, self._parts, self._times = head, parts, times
        self._layout, self._counters = layout, counters
        for part in parts:
            with archive.reading(self._file(part), KIND) as file:
                check_part(file, part, layout, counters)

    def fill(self, arrays: Arrays, history: object) -> Saved:
        """Read them, the oldest first: an entry may have been written again since."""
        for part in self._parts:
            with archive.reading(self._file(part), KIND) as file:
                file.fill(views(arrays, check_part(file, part, self._layout, self._counters)))
                if file.digest != part.digest:
                    raise file.damaged("it belongs to another save")
        return Saved(self._head, self._times, tuple(self._parts), history)

    def _file(self, part: Part) -> Path:
        return existing(self._head, part.beside(self._head))


def saved_parts(
    place: archive.Place, file: archive.Reader, layout: Layout, counters: dict[str, int]
) -> PartsReader | None:
    """The parts that an open head names, checked; None if the file holds all by itself."""
    if "parts" not in file.content:
        return None
    require(
        archive.as_stream(place, "read") is None, "a save in parts is loaded from its path", place, "name it"
    )
    times = {clock: counters[clock] for clock in clock_lengths(layout) if clock != ROWS}
    times = {ROWS: file.content["state"]["next_id"], **times}
    parts = from_listed(file.content["parts"], layout, times)
    return PartsReader(archive.as_path(place), parts, layout, times, counters)
