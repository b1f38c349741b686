"""The replay memory: steps of one or many environments in, prioritized batches out."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from pser.errors import PserError, require
from pser.files import archive
from pser.memory import forking, persistence
from pser.memory.arrays import INT64, Ints, Reals, as_ids, as_reals, as_streams, to_numpy
from pser.memory.autoreset import AutoresetWatch
from pser.memory.batch import Batch, BatchBuffers, ThreadBuffers, first_row
from pser.memory.changes import Saving
from pser.memory.columns import Sizes, check_steps, columns_of
from pser.memory.disk import Closed, DiskFile, disk_of
from pser.memory.index import (
    LARGEST_BATCH,
    PriorityIndex,
    as_rows,
    check_sample,
    check_sizes,
    given_priority,
)
from pser.memory.offline import arrays_of, episodes_in, fill, opened, reward_dtype_of, spec_of, write_minari
from pser.memory.parts import Saved
from pser.memory.prioritization import PSER, Prioritization
from pser.memory.rows import flags_of, intake_of, reals_of, rows_of
from pser.memory.saving import Reduced, reduced
from pser.memory.sequences import SequenceBatch, Sequences, update_windows
from pser.memory.storage import Storage
from pser.memory.tensors import TensorBatch
from pser.spec import WHOLE, Array, Frames, action_field, checked_dtype, observation_fields


class ReplayMemory:
    """A ring of transitions, sampled by priority. One thread may add while another samples and updates."""

    def __init__(
        self,
        capacity: int,
        observation: Any,
        action: Any = None,
        num_envs: int = 1,
        prioritization: Prioritization | None = None,
        n_step: int = 1,
        gamma: float = 0.99,
        seed: int | np.random.Generator | None = None,
        *,
        reward_dtype: npt.DTypeLike = np.float32,
        storage: Literal["memory", "disk"] = "memory",
        path: str | PathLike[str] | DiskFile | None = None,
    ) -> None:
        """An empty memory.

        Args:
            capacity: how many transitions it holds; the oldest make room for new ones.
            observation: pser.Array, pser.Frames, a dict of these, or a Gymnasium space.
            action: pser.Array or a Gymnasium space; one int64 if not given.
            num_envs: environments that add to it.
            prioritization: pser.PSER (default, with the paper's settings), pser.PER or pser.Uniform.
            n_step: rewards summed per transition.
            gamma: discount per step.
            seed: of the memory's own random generator.
            reward_dtype: float32 or float64, of rewards and discounts.
            storage: "disk" keeps observations, actions and rewards in a file that is mapped into memory; priorities
                (28 bytes a transition) stay in memory. Compressed frames then need `capacity_bytes`.
            path: a new folder for storage="disk". `load` of the folder opens it again.
        """
        check_sizes(capacity, num_envs, "num_envs")
        check_steps(n_step, gamma)
        real = checked_dtype(reward_dtype)
        require(
            real in (np.float32, np.float64), "reward_dtype must be float32 or float64", real, "choose one"
        )
        self._index = PriorityIndex(
            capacity, PSER() if prioritization is None else prioritization, num_envs, seed
        )
        self._fields = observation_fields(observation)
        self._action = Array((), np.int64) if action is None else action_field(action)
        self.capacity = self._index.capacity
        self.num_envs = self._index.num_streams
        self.n_step = int(n_step)
        self.gamma = float(gamma)
        self._real = real
        sizes = Sizes(self.capacity, self.num_envs, self.n_step)
        self._columns = columns_of(self._fields, sizes)
        self._disk = disk_of(storage, path, self._fields)
        try:
            self._storage = Storage(
                self._index._kernel, self._columns, self._action, sizes, self.gamma, self._real, self._disk
            )
        except PserError:
            raise
        except (MemoryError, ValueError):  # NumPy: too large for this machine, or for any
            raise PserError(
                f"{self.capacity} transitions of {observation} must fit into memory: lower capacity"
            ) from None
        self._intake = intake_of(self._storage.kernel, self._fields, self._action)
        self._buffers: ThreadBuffers[int, BatchBuffers] = ThreadBuffers()
        self._sequences = Sequences(
            self._storage.kernel, self._index, self._columns, self._action, self._real
        )
        # Frames that do not follow from the stack before are refused anyway.
        refuses = any(isinstance(field, Frames) for field in self._fields.values())
        self._watch = None if refuses else AutoresetWatch()
        self._history = object()
        self._saving: Saving | None = None
        self._saved: Saved | None = None
        if self._disk is not None:
            forking.share(self._index)
            if self._disk.is_new:
                self.flush()

    @property
    def prioritization(self) -> Prioritization:
        """How transitions are chosen."""
        return self._index.prioritization

    @property
    def max_priority(self) -> float:
        """The largest priority ever recorded (1.0 at the start)."""
        return self._index.max_priority

    @property
    def total_mass(self) -> float:
        """Σ p^α, what the sampling probabilities are divided by; known without a pass over the memory."""
        return self._index.total_mass

    @property
    def index(self) -> PriorityIndex:
        """The priority index underneath, to read ids and probabilities from."""
        return self._index

    def __len__(self) -> int:
        """Transitions now in memory."""
        return len(self._index)

    def __repr__(self) -> str:
        observation = self._fields.get(WHOLE, self._fields)
        return (
            f"<ReplayMemory of {len(self):,} of {self.capacity:,} transitions: observation={observation}, "
            f"action={self._action}, num_envs={self.num_envs}, n_step={self.n_step}, gamma={self.gamma}, "
            f"{self.prioritization}>"
        )

    def add(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        terminated: Any,
        truncated: Any,
        priority: Any = None,
        *,
        td_error: Any = None,
        stream: Any = None,
    ) -> Ints:
        """Add one step of every environment, or of those that `stream` names; return the ids of completed transitions.

        All values have the environments as their first axis (which a single environment may leave out). At an
        episode's end `next_observation` is the true final observation, not the first of the next episode. Without
        `priority` (raw p) or `td_error` (p = |δ| + ε) a transition takes the largest priority ever recorded.
        """
        watch = self._watch
        if watch is None or not watch.waiting:
            added = self._intake.add(
                observation,
                action,
                reward,
                next_observation,
                terminated,
                truncated,
                priority,
                td_error,
                stream,
                watch is None,
            )
            if added is not None:
                return np.frombuffer(added, INT64)
        # The kernel did not take it as it is: convert it, say what is wrong, or wait for a save.
        streams = None if stream is None else as_streams(stream)
        rows = self.num_envs if streams is None else len(streams)
        now = self._observation_rows(observation, rows, "observation")
        actions = rows_of(self._action, action, rows, "action")
        rewards = reals_of(reward, rows, "reward")
        following = self._observation_rows(next_observation, rows, "next_observation")
        ends = flags_of(terminated, rows, "terminated"), flags_of(truncated, rows, "truncated")
        given = given_priority(self.prioritization, priority, td_error, rows)
        step = (now, actions, rewards, following, *ends, given, streams)
        ids = self._in_room(rows, self._storage.kernel.add, *step)
        if self._watch is not None:
            named = range(rows) if streams is None else streams
            self._watch = self._watch.after(named, now, rewards, following, ends[0] | ends[1])
        return ids

    def end_episodes(self, stream: Any = None) -> Ints:
        """End the running episodes here as if truncated, of all environments or of those named.

        For a run that goes on with fresh environments: unfinished n-step transitions are completed, and the next
        step begins an episode. Returns the ids of the transitions completed.
        """
        streams = np.arange(self.num_envs) if stream is None else as_streams(stream)
        return self._in_room(len(streams), self._storage.kernel.end_episodes, streams)

    @overload
    def sample(
        self,
        batch_size: int,
        beta: float = 0.5,
        copy: bool = False,
        *,
        positions: Any = None,
        out: Literal["numpy"] = "numpy",
    ) -> Batch: ...

    @overload
    def sample(
        self,
        batch_size: int,
        beta: float = 0.5,
        copy: bool = False,
        *,
        positions: Any = None,
        out: Literal["torch"],
    ) -> TensorBatch: ...

    def sample(
        self,
        batch_size: int,
        beta: float = 0.5,
        copy: bool = False,
        *,
        positions: Any = None,
        out: Literal["numpy", "torch"] = "numpy",
    ) -> Batch | TensorBatch:
        """Draw transitions with replacement by P(i) = p_i^α / Σ p_k^α.

        The batch's arrays are filled again by the next sample of the same size in the same thread, unless `copy` asks
        for fresh ones: hand a batch to another thread only as a copy. `out="torch"` gives tensors over the same
        numbers, as `Batch.torch` does. With `positions`, `batch_size` numbers in [0, 1): the transitions at these
        shares of the mass, without a random draw.
        """
        if out not in ("numpy", "torch"):
            raise PserError(f"out must be 'numpy' or 'torch', got {out!r}: for another device use batch.to")
        if (
            type(batch_size) is not int
            or type(beta) is not float
            or not (1 <= batch_size <= LARGEST_BATCH and 0.0 <= beta <= 1.0)
        ):
            check_sample(batch_size, beta)
        buffers = None if copy else self._buffers.of_size.get(batch_size)
        if buffers is None:
            buffers = self._new_buffers(batch_size)
            if not copy:
                self._buffers.keep(batch_size, buffers)
        if positions is None:
            self._storage.kernel.sample(self._index._draws, beta, buffers.outputs)
        else:
            at = as_rows(as_reals(positions, "positions"), int(batch_size), "positions")
            self._storage.kernel.sample_at(at, beta, buffers.outputs)
        return buffers.batch if out == "numpy" else buffers.batch.torch()

    def _new_buffers(self, size: int) -> BatchBuffers:
        try:
            return BatchBuffers(size, self._columns, self._action, self._real)
        except MemoryError:
            raise PserError(f"a batch of {size} transitions must fit into memory: lower batch_size") from None

    def sample_sequences(
        self,
        batch_size: int,
        length: int,
        burn_in: int = 0,
        overlap: int | None = None,
        beta: float = 0.5,
        copy: bool = False,
    ) -> SequenceBatch:
        """Draw windows of `length` consecutive steps of one episode, preceded by up to `burn_in` more.

        A step is drawn by P(i), and a window laid around it: without `overlap` anywhere that it fits into the episode,
        each place as likely; with `overlap` one of those that begin every `length - overlap` steps of the episode, as
        far as it is retained. Windows of short episodes are padded. `batch.torch()` gives tensors.
        """
        return self._sequences.sample(batch_size, length, burn_in, overlap, beta, copy)

    def __getitem__(self, ids: Any) -> Batch:
        """The transitions with these ids, as a batch of their own; of a single id, without the row axis.

        Nobody sampled them: the weights are 1. An id that is not in memory is an error.
        """
        wanted = as_ids(ids)
        buffers = self._new_buffers(wanted.size)
        buffers.batch.ids[:] = wanted.reshape(-1)
        buffers.batch.weights[:] = 1.0
        if wanted.size:
            self._storage.kernel.read(buffers.outputs)
        return buffers.batch if np.ndim(ids) else first_row(buffers.batch)

    def update_priorities(
        self, ids: Any, td_errors: Any, *, mask: Any = None, max_share: float | None = None
    ) -> int:
        """Set sampled transitions' priorities from their TD errors and decay them backward (Algorithm 1).

        Ids overwritten meanwhile are skipped; returns how many rows were applied. NumPy, torch and JAX arrays will do.
        Of sequences, `ids` and `td_errors` have shape (sequences, steps), and only rows in `mask` count (`batch.learn`;
        else those with an id): each step takes its own TD error, or with `max_share` all steps of a window take
        max_share·max |δ| + (1 - max_share)·mean |δ|.
        """
        if max_share is None:
            kernel = self._index._kernel
            try:
                if mask is None:
                    return kernel.update(ids, td_errors)
                return kernel.update_windows(ids, td_errors, mask)
            except (TypeError, PserError):
                pass  # converted, or explained, below
            if mask is None and np.ndim(ids) < 2:
                return self._index.update(ids, td_errors)
        return update_windows(self._index, ids, td_errors, mask, max_share)

    def set_priorities(self, ids: Any, priorities: Any) -> int:
        """Set raw priorities as given: no η, no decay, and no replay counted. The start of a rule of one's own.

        Ids overwritten meanwhile are skipped; returns how many rows were applied.
        """
        return self._index.set_priorities(ids, priorities)

    def raise_max_priority(self, priority: float) -> None:
        """New transitions without a priority take at least this one."""
        self._index.raise_max_priority(priority)

    def predecessors(self, ids: Any, steps: int) -> Ints:
        """(n, steps) ids of the transitions before each of `ids` in its episode, the nearest first; −1 beyond it."""
        return self._index.predecessors(ids, steps)

    def clear(self) -> None:
        """Forget every transition, and what is unfinished; the next steps begin episodes.

        Ids go on, so that those of earlier batches are known to be gone; so do the largest priority ever recorded, the
        counts and the random generator.
        """
        self._storage.kernel.clear()

    def priorities(self, ids: Any) -> Reals:
        """Raw priorities p; NaN for ids that were overwritten."""
        return self._index.priority(ids)

    def stats(self) -> dict[str, float]:
        """Numbers to watch while training (docs/metrics.md defines each); one pass over the memory."""
        return self._index.stats()

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """What every transition now in memory holds but its observations, oldest first; copies.

        The columns of the index (`pser.memory.index.Columns`), then action, reward, discount and terminated. No other
        thread may add meanwhile.
        """
        columns: dict[str, npt.NDArray[Any]] = self._index.columns()._asdict()
        slots = columns["ids"] % self.capacity
        for name in ("action", "reward", "discount", "terminated"):
            columns[name] = self._storage.arrays[f"{name}/rows"][slots]
        return columns

    def check_invariants(self) -> None:
        """Raise AssertionError if the memory contradicts itself."""
        self._index.check_invariants()

    def save(self, path: archive.Place) -> None:
        """Write all of it to one file, atomically, or to a binary stream; loading continues bit for bit.

        It is written without a second copy in memory.
        """
        persistence.write(self, path)

    def __reduce__(self) -> Reduced:
        """A copy (`copy`, `pickle`) is what would be saved and loaded; it draws on from where this one is."""
        if self._disk is not None:
            raise PserError(
                f"a memory on disk is not copied or pickled, got one in {str(self._disk.folder)!r}: save it to a file "
                "and load that, or close it and load its folder"
            )
        return reduced(self)

    def save_changes(
        self, path: str | PathLike[str], *, since: Saved | None = None, background: bool = False
    ) -> Saving:
        """Write what is new since the last such save of this memory, or since the one given; link the rest.

        The file at `path` holds what is unfinished (open episodes, the random generator) and names files beside it with
        all that was added and is still in memory, and with the priorities; `load(path)` continues bit for bit. A file
        once written is never written to again, and shared between saves by hard links: a damaged one damages every save
        that names it. In the first save, or if the earlier files are gone, everything is written; and again when the
        parts have become many.

        With `background`, the call returns once a snapshot is taken and the rest is written in a thread: `wait()` of
        what it returns waits for the end, and raises what went wrong.
        """
        saving = self.begin_save(path, self._saved if since is None else since)
        if background:
            saving.in_background()
        else:
            saving.write()
        return saving

    def begin_save(self, path: str | PathLike[str], since: Saved | None) -> Saving:
        """The snapshot of a save of what is new; `write` of what it returns must follow, in whatever thread."""
        while True:
            saving = self._saving
            if saving is not None:
                saving.finished()
            with self._index.locked():
                if self._saving is None:  # or somebody else has begun one meanwhile
                    return Saving(self, archive.as_path(path), since)

    @property
    def saved(self) -> Saved | None:
        """The last save of what was new, or the one that it was loaded from."""
        return self._saved

    def flush(self) -> None:
        """Of a memory on disk: write its priorities and open episodes, and force all to disk.

        If the process dies, `load` of its folder goes on from here, without as many of the oldest transitions as were
        added since.
        """
        if self._disk is None:
            raise PserError("only a memory with storage='disk' is flushed: use save")
        persistence.flush(self, self._disk)

    def close(self) -> None:
        """Flush a memory on disk and let go of its folder; `load` continues bit for bit, also after a restart.

        It cannot be used afterwards. Closing twice does nothing.
        """
        if self._disk is None:
            raise PserError("only a memory with storage='disk' is closed: it holds no file")
        if isinstance(self._storage, Closed):
            return
        if self._saving is not None:
            self._saving.finished()
        self.flush()
        self._disk.close()
        closed: Any = Closed(self._disk.folder)
        self._storage = self._intake = self._sequences = closed

    def _in_room(self, rows: int, enter: Callable[..., bytes | None], *values: Any) -> Ints:
        """The ids of what enters; while a save is under way, once so many rows touch nothing it has still to write."""
        ids = enter(*values, False)
        while ids is None:
            saving = self._saving
            if saving is not None:
                saving.make_way(rows)
            with self._index.locked():  # the next save begins under it
                saving = self._saving
                if saving is None or saving.has_room(rows):
                    ids = enter(*values, True)
        return np.frombuffer(ids, np.int64)

    @classmethod
    def load(cls, path: archive.Place) -> Self:
        """The memory that was saved, to a file or a stream; a damaged one is refused.

        Of a folder: the memory on disk that lives there, opened again. If it was not closed, it is as it was flushed
        last, without as many of the oldest transitions as had been added since, and running episodes have ended.
        """
        return persistence.load(cls, path)

    @classmethod
    def from_arrays(
        cls,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        terminated: Any,
        truncated: Any,
        *,
        priority: Any = None,
        td_error: Any = None,
        spec: Any = None,
        capacity: int | None = None,
        **settings: Any,
    ) -> Self:
        """A memory of steps in the order they were played, one per row; the flags tell where episodes end.

        Shapes and dtypes are those of the arrays (`spec` names another storage for observations, `pser.Frames` for
        instance), and the capacity is their number, unless given. `settings` are those of a memory: prioritization,
        n_step, gamma, seed, reward_dtype.
        """
        seen, following = (
            arrays_of(observation, "observation"),
            arrays_of(next_observation, "next_observation"),
        )
        actions, rewards = to_numpy(action, "action"), to_numpy(reward, "reward")
        settings.setdefault("reward_dtype", reward_dtype_of(rewards))
        memory = cls(
            len(rewards) if capacity is None else capacity,
            spec_of(seen) if spec is None else spec,
            spec_of(actions),
            **settings,
        )
        ends = to_numpy(terminated, "terminated"), to_numpy(truncated, "truncated")
        fill(memory, seen, actions, rewards, following, *ends, priority=priority, td_error=td_error)
        return memory

    @classmethod
    def from_minari(
        cls, dataset: Any, *, spec: Any = None, capacity: int | None = None, **settings: Any
    ) -> Self:
        """A memory of a Minari dataset (or of the local one of that name), bit for bit; arguments as `from_arrays`."""
        dataset, memory = opened(dataset), None
        for episode in episodes_in(dataset):
            if memory is None:
                settings.setdefault("reward_dtype", reward_dtype_of(episode[2]))
                memory = cls(
                    int(dataset.total_steps) if capacity is None else capacity,
                    spec_of(episode[0]) if spec is None else spec,
                    spec_of(episode[1]),
                    **settings,
                )
            fill(memory, *episode)
        if memory is None:
            raise PserError(f"a dataset must have at least one episode, got {dataset!r}: choose another")
        return memory

    def to_minari(self, dataset_id: str, **options: Any) -> Any:
        """Write every episode in memory to a Minari dataset and return it; `options` are Minari's (`env`, `author`, …).

        What is retained of an episode is written, a running one as truncated. Priorities are not part of a dataset.
        """
        return write_minari(self, dataset_id, **options)

    def _observation_rows(self, value: Any, rows: int, what: str) -> list[npt.NDArray[Any]]:
        if WHOLE in self._fields:
            return [rows_of(self._fields[WHOLE], value, rows, what)]
        if not isinstance(value, Mapping) or set(value) != set(self._fields):
            got = sorted(value) if isinstance(value, Mapping) else type(value).__name__
            raise PserError(
                f"{what} must be a dict with the fields {sorted(self._fields)}, got {got}: match the spec"
            )
        return [
            rows_of(field, value[name], rows, f"{what}[{name!r}]") for name, field in self._fields.items()
        ]
