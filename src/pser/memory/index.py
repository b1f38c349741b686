"""The priority index: the rules of the memory without its storage, to drive somebody else's."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pser import _kernel
from pser.errors import PserError, is_real, is_whole, require
from pser.files import archive
from pser.memory import forking, saving
from pser.memory.arrays import INT64, Ints, Reals, as_flags, as_ids, as_reals, as_streams
from pser.memory.prioritization import PER, PSER, Prioritization, Uniform

LARGEST_CAPACITY = 2**31 - 1
"""Distances between a transition and its predecessor are kept in 32 bits."""
LARGEST_PRIORITY = 1e100
"""Larger than any meaningful TD error; a billion of them still sum to a finite number."""
MOST_STREAMS = 2**20
LARGEST_BATCH = 2**24

COLUMNS = {
    "priority": np.float64,
    "mass": np.float64,
    "own_mass": np.float32,
    "replays": np.uint32,
    "back": np.int32,
    "source": np.uint8,
}
"""Columns of the kernel → their dtypes."""
SOURCES = ("insertion", "retention", "td_error", "decay")
"""What a priority can come from: its insertion (never replayed), what η kept, its own TD error, backward decay."""


class Columns(NamedTuple):
    """What the transitions in memory hold, one row each, oldest first. Copies: later calls do not change them."""

    ids: Ints
    """Consecutive."""
    priority: Reals
    """Raw p."""
    mass: Reals
    """p^α; by rank, 1/rank^α; uniform, 1. P(i) is its share of the sum."""
    own_mass: npt.NDArray[np.float32]
    """The mass that the last update of its own, or its insertion, gave it; what exceeds it came by decay.
    Proportional prioritization only."""
    replays: npt.NDArray[np.uint32]
    """Updates of its own since it was added."""
    back: npt.NDArray[np.int32]
    """How many ids earlier its predecessor was added (same stream, same episode); 0 if it has none.
    The predecessor may have left the memory."""
    source: npt.NDArray[np.uint8]
    """What last determined its priority, as a place in SOURCES."""


class PriorityIndex:
    """Priorities, ids and predecessors of the transitions in a ring of `capacity` slots.

    The transition with id i belongs into slot i % capacity of a storage beside it. Safe to use from several threads.
    """

    def __init__(
        self,
        capacity: int,
        prioritization: Prioritization,
        num_streams: int = 1,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        """An empty index; `num_streams` sequences (environments) may add to it, in lockstep or not."""
        check_sizes(capacity, num_streams, "num_streams")
        if not isinstance(prioritization, PSER | PER | Uniform):
            raise PserError(
                f"prioritization must be pser.PSER, pser.PER or pser.Uniform, got {prioritization!r}: choose one"
            )
        self.capacity = int(capacity)
        self.num_streams = int(num_streams)
        self.prioritization = prioritization
        rng = generator(seed)
        try:
            self._kernel = _kernel.Index(self.capacity, self.num_streams, prioritization.rules())
        except MemoryError:
            raise PserError(
                f"the index of {self.capacity} transitions must fit into memory: lower capacity"
            ) from None
        self._use(rng)
        forking.watch(self)

    def _use(self, rng: np.random.Generator) -> None:
        with self.locked():  # a save tells the generator that is drawn from
            self._rng = rng
            self._draws = _kernel.Draws(rng.bit_generator)

    def __len__(self) -> int:
        """Transitions now in memory."""
        return self._kernel.size

    @property
    def next_id(self) -> int:
        """The id that the next transition will get; so many were ever added."""
        return self._kernel.next_id

    @property
    def oldest_id(self) -> int:
        """The oldest id still in memory."""
        return self._kernel.oldest_id

    @property
    def max_priority(self) -> float:
        """The largest priority ever recorded (1.0 at the start): what a transition without one is given."""
        return self._kernel.max_priority

    @property
    def total_mass(self) -> float:
        """Σ p^α, what the sampling probabilities are divided by; known without a pass over the memory."""
        return self._kernel.total_mass

    def append(self, first: Any, priority: Any = None, stream: Any = None, *, td_error: Any = None) -> Ints:
        """Add one transition per row, in order, and return their ids.

        `first` tells which rows begin an episode. Row e belongs to stream e, unless `stream` names each row's.
        Without `priority` (raw p) or `td_error` (p = |δ| + ε) a row takes the largest priority ever recorded.
        """
        firsts = np.atleast_1d(as_flags(first, "first"))
        rows = len(firsts)
        streams = None if stream is None else as_rows(as_streams(stream), rows, "stream")
        if streams is None and rows != self.num_streams:
            raise PserError(
                f"without `stream` there must be one row for each of {self.num_streams} streams, got {rows}: name them"
            )
        ids = np.empty(rows, np.int64)
        self._kernel.append(
            firsts, given_priority(self.prioritization, priority, td_error, rows), streams, ids
        )
        return ids

    def sample(self, batch_size: int, beta: float = 0.5, positions: Any = None) -> tuple[Ints, Reals]:
        """`batch_size` ids drawn with replacement by P(i), and their importance-sampling weights.

        With `positions`, `batch_size` numbers in [0, 1): the ids at these shares of the mass, without a random draw.
        """
        if (
            type(batch_size) is not int
            or type(beta) is not float
            or not (1 <= batch_size <= LARGEST_BATCH and 0.0 <= beta <= 1.0)
        ):
            check_sample(batch_size, beta)
            batch_size, beta = int(batch_size), float(beta)
        if positions is None:
            return self._kernel.sample(self._draws, batch_size, beta)
        at = as_rows(as_reals(positions, "positions"), batch_size, "positions")
        ids, weights = np.empty(batch_size, INT64), np.empty(batch_size)
        self._kernel.sample_at(at, beta, ids, weights)
        return ids, weights

    def update(self, ids: Any, td_errors: Any) -> int:
        """Set the priorities of sampled transitions from their TD errors, and decay them backward.

        Ids overwritten meanwhile are skipped. Returns how many rows were applied. The order of rows does not matter.
        """
        try:
            return self._kernel.update(ids, td_errors)
        except TypeError:  # not contiguous int64 and floats: convert, then again
            return self._kernel.update(as_ids(ids), as_reals(td_errors, "td_errors"))

    def set_priorities(self, ids: Any, priorities: Any) -> int:
        """Set raw priorities as given: no η, no decay, and no replay counted. The start of a rule of one's own.

        Ids overwritten meanwhile are skipped; an id given twice takes the larger priority. Returns how many rows were
        applied. The largest priority ever recorded grows with them.
        """
        ids = as_ids(ids).reshape(-1)
        return self._kernel.set_priorities(
            ids, as_rows(as_reals(priorities, "priorities"), len(ids), "priorities")
        )

    def raise_max_priority(self, priority: float) -> None:
        """New transitions without a priority take at least this one."""
        require(
            is_real(priority) and 0.0 <= priority <= LARGEST_PRIORITY,
            f"priority must be a number from 0 to {LARGEST_PRIORITY}",
            priority,
            "pass a raw priority",
        )
        self._kernel.raise_max_priority(float(priority))

    def predecessors(self, ids: Any, steps: int) -> Ints:
        """(n, steps) ids of the transitions before each of `ids` in its episode, the nearest first.

        −1 beyond the episode's start or the oldest transition in memory, and for ids that were overwritten.
        """
        ids = as_ids(ids).reshape(-1)
        require(
            is_whole(steps) and steps >= 1 and steps * max(len(ids), 1) <= LARGEST_BATCH,
            f"steps must be at least 1, and at most {LARGEST_BATCH} in all rows together",
            steps,
            "the paper's window is 5",
        )
        out = np.empty((len(ids), int(steps)), np.int64)
        self._kernel.predecessors(ids, out)
        return out

    def priority(self, ids: Any) -> Reals:
        """Raw priorities p; NaN for ids that were overwritten."""
        ids = as_ids(ids)
        out = np.empty(ids.shape)
        self._kernel.priority(ids, out)
        return out

    def probabilities(self, ids: Any) -> Reals:
        """P(i) as of now; NaN for ids that were overwritten."""
        ids = as_ids(ids)
        out = np.empty(ids.shape)
        self._kernel.probability(ids, out)
        return out

    def cut(self, stream: int) -> None:
        """The stream's next transition has no predecessor, whatever its `first` flag says."""
        require(
            is_whole(stream) and 0 <= stream < self.num_streams,
            f"stream must be from 0 to {self.num_streams - 1}",
            stream,
            "name a stream of this index",
        )
        self._kernel.cut(int(stream))

    def set_alpha(self, alpha: float) -> None:
        """Another α from here on; raw priorities stay. One pass over the memory."""
        if isinstance(self.prioritization, Uniform):
            raise PserError(f"pser.Uniform has no alpha, got {alpha!r}: use pser.PER or pser.PSER")
        changed = replace(self.prioritization, alpha=alpha)
        self._kernel.set_alpha(changed.alpha)
        self.prioritization = changed

    def reseed(self, seed: int | np.random.Generator | None) -> None:
        """Draw from a new random generator from here on."""
        self._use(generator(seed))

    def stats(self) -> dict[str, float]:
        """Numbers to watch while training (docs/metrics.md defines each); one pass over the memory."""
        return self._kernel.stats()

    def columns(self) -> Columns:
        """What every transition now in memory holds, as arrays, oldest first; one pass over the memory."""
        columns = self._kernel.columns()
        oldest = columns.pop("oldest_id")
        arrays = {name: np.frombuffer(columns[name], dtype) for name, dtype in COLUMNS.items()}
        return Columns(ids=oldest + np.arange(len(arrays["mass"])), **arrays)

    def check_invariants(self) -> None:
        """Raise AssertionError if the memory contradicts itself."""
        broken = self._kernel.broken_invariant()
        if broken:
            raise AssertionError(f"broken invariant: {broken}")

    def save(self, path: archive.Place) -> None:
        """Write all of it to one file, atomically, or to a binary stream; loading continues bit for bit."""
        with self.locked():
            settings = {
                "capacity": self.capacity,
                "num_streams": self.num_streams,
                "prioritization": saving.to_json(self.prioritization),
            }
            content = {"settings": settings, "state": self.state()}
            archive.write(path, "PriorityIndex", content, self.state_arrays())

    @classmethod
    def load(cls, path: archive.Place) -> Self:
        """The index that was saved, to a file or a stream; a damaged one is refused."""
        with archive.reading(path, "PriorityIndex") as file:
            settings, state = file.content["settings"], file.content["state"]
            capacity, streams = settings["capacity"], settings["num_streams"]
            check_saved_sizes(capacity, streams, state)
            rule = saving.prioritization_from_json(settings["prioritization"])
            in_slots = is_in_slots(file)
            file.require(saved_bytes(rule, capacity, streams, state["next_id"], in_slots))
            index = cls(capacity, rule, streams)
            file.fill(index.state_arrays(state["next_id"], in_slots))
            index.set_state(state, in_slots)
        return index

    def __reduce__(self) -> saving.Reduced:
        """A copy (`copy`, `pickle`) is what would be saved and loaded; it draws on from where this one is."""
        return saving.reduced(self)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads out of the index (and of a memory built on it) for a while.

        The thread itself may go on calling it. Whoever holds two indexes takes them in one order everywhere.
        """
        self._kernel.lock()
        try:
            yield
        finally:
            self._kernel.unlock()

    def state(self) -> dict[str, Any]:
        """All that is not an array, ready for JSON."""
        return {**self._kernel.get_state(), "rng": saving.rng_state(self._rng)}

    def set_state(self, state: dict[str, Any], in_slots: bool = False) -> None:
        """Take over a saved state, once the arrays were filled (in the order of the slots, or as they are kept)."""
        with self.locked():
            if in_slots:
                self._kernel.take_slot_order(min(state["next_id"], self.capacity))
            self._kernel.set_state(state)
            self._use(saving.rng_from_state(state["rng"]))

    def state_arrays(
        self, next_id: int | None = None, in_slots: bool = False
    ) -> dict[str, np.ndarray[Any, Any]]:
        """What is in use, as bytes in place: read when saving, filled when loading."""
        added = self.next_id if next_id is None else next_id
        used = saved_bytes(self.prioritization, self.capacity, self.num_streams, added, in_slots)
        kept = [np.frombuffer(self._kernel.blocks(), np.uint8)]
        parts = self._kernel.decayed_parts()
        if parts is not None:
            kept.append(np.frombuffer(parts, np.float64))
        return {
            name: array[: size // array.itemsize]
            for (name, size), array in zip(used.items(), kept, strict=True)
        }


IN_SLOTS = "index"
"""The array of an index kept in the order of its slots: of one stream, or by earlier versions."""
IN_TILES = "index/tiles"


def is_in_slots(file: archive.Reader) -> bool:
    """Does the file hold an index in the order of its slots?"""
    return file.arrays[0][0] == IN_SLOTS


def saved_bytes(
    rule: Prioritization, capacity: int, streams: int, next_id: int, in_slots: bool = False
) -> dict[str, int]:
    """How large the index's arrays are in a file, once `next_id` transitions were ever added."""
    streams = 1 if in_slots else streams
    used = _kernel.used_cells(capacity, streams, min(next_id, capacity))
    name = IN_TILES if _kernel.is_tiled(capacity, streams) else IN_SLOTS
    sizes = {name: -(-used // _kernel.FAN_OUT) * _kernel.BLOCK_BYTES}
    if isinstance(rule, PSER) and rule.retain == "decayed":
        sizes["index/decayed"] = used * 8
    return sizes


def check_saved_sizes(capacity: int, streams: int, state: dict[str, Any]) -> None:
    """The sizes that a file names make sense, and nothing larger than it is will be allocated for them."""
    check_sizes(capacity, streams, "num_streams")
    saving.check_count(state["next_id"], "next_id")
    require(
        len(state["last_id"]) == streams, "a saved index knows every stream", streams, "use an older copy"
    )


def check_sizes(capacity: int, streams: int, streams_name: str) -> None:
    """Capacity and number of streams make sense."""
    require(
        is_whole(capacity) and 1 <= capacity <= LARGEST_CAPACITY,
        f"capacity must be a whole number of transitions from 1 to {LARGEST_CAPACITY}",
        capacity,
        "try 1_000_000",
    )
    require(
        is_whole(streams) and 1 <= streams <= MOST_STREAMS,
        f"{streams_name} must be from 1 to {MOST_STREAMS}",
        streams,
        "count your environments",
    )


def check_sample(batch_size: int, beta: float) -> None:
    """A batch can be drawn with these arguments."""
    require(
        is_whole(batch_size) and 1 <= batch_size <= LARGEST_BATCH,
        f"batch_size must be from 1 to {LARGEST_BATCH}",
        batch_size,
        "32 is usual",
    )
    require(is_real(beta) and 0.0 <= beta <= 1.0, "beta must be from 0 to 1", beta, "the paper uses 0.5")


def generator(seed: Any) -> np.random.Generator:
    """The memory's own random generator: seeded, or the one given."""
    try:
        rng = np.random.default_rng(seed)
    except (ValueError, TypeError):
        raise PserError(
            f"seed must be a whole number from 0 on, None or a numpy.random.Generator, got {seed!r}: try 0"
        ) from None
    saving.rng_state(rng)  # refuses now what could not be saved later
    return rng


def as_rows(values: Any, rows: int, what: str) -> Any:
    """One value per row, as a flat array."""
    flat = values.reshape(-1)
    if flat.shape[0] != rows:
        raise PserError(
            f"{what} must have one value for each of the {rows} rows, got shape {values.shape}: match the rows"
        )
    return flat


def given_priority(rule: Prioritization, priority: Any, td_error: Any, rows: int) -> Reals | None:
    """The rows' raw priorities: as given, or |δ| + ε (Brittain et al. 2019, Eq. 4), or None for MaxPrio."""
    if priority is None and td_error is None:
        return None
    if priority is not None and td_error is not None:
        raise PserError("give priority or td_error, not both: a priority is |td_error| + eps")
    if priority is not None:
        values: Reals = as_rows(as_reals(priority, "priority"), rows, "priority")
        wrong = ~(values >= 0.0)
    else:
        deltas: Reals = as_rows(as_reals(td_error, "td_error"), rows, "td_error")
        values = np.abs(deltas) + (0.0 if isinstance(rule, Uniform) else rule.eps)
        wrong = ~np.isfinite(values)
    if wrong.any():
        raise PserError(
            f"priorities must be finite and not negative, got {values[wrong][0]}: check the TD errors"
        )
    return values
