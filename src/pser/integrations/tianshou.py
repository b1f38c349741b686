"""Tianshou 2: prioritized buffers for one environment and for many, usable by its collectors and its DQN.

Both keep all transitions in one ring, in the order they came: the transition with id i lies in slot i % maxsize. With
many environments `prev` and `next` follow the environment's own episode through the ring, so that no environment has
to share the ring evenly with the others. Tianshou names transitions by slot.
"""

from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.data import Batch, ReplayBuffer, ReplayBufferManager
from tianshou.data.batch import alloc_by_keys_diff, create_value
from tianshou.data.utils.converter import from_hdf5, to_hdf5

from pser.errors import PserError, require
from pser.integrations._shared import (
    Beta,
    beta_at,
    ids_in_slots,
    index_from_bytes,
    index_to_bytes,
    require_prioritization,
    require_version,
)
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import Prioritization

require_version("tianshou", "2.0", "3")

Ints = NDArray[np.int64]
NOWHERE = -1


class TianshouError(PserError, AssertionError):
    """A rule of Tianshou's buffers was broken; they assert."""


class PrioritizedReplayBuffer(ReplayBuffer):
    """Tianshou's replay buffer, sampled by PSER, PER or uniformly. Its rules are those of `index`.

    A sampled batch carries its importance-sampling weights as `weight`, and `update_weight` takes TD errors, as
    Tianshou's algorithms expect of a prioritized buffer.
    """

    def __init__(
        self,
        size: int,
        prioritization: Prioritization | None = None,
        *,
        beta: Beta = 0.5,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        """How many transitions, how to sample them, then Tianshou's own arguments (`stack_num`, ...).

        `beta` may be a schedule over transitions added (`pser.Anneal`).
        """
        chosen = require_prioritization(
            prioritization, f"{type(self).__name__}(..., prioritization=pser.PSER())"
        )
        require(
            not kwargs.get("sample_avail", False),
            "sample_avail must be False: priorities decide what is sampled",
            True,
            "leave it out",
        )
        # Named bases, here and below: with many environments `super()` would be the manager of separate rings.
        ReplayBuffer.__init__(self, size, **kwargs)
        self.beta = beta
        self.seed = seed
        self._start(PriorityIndex(self.maxsize, chosen, self._streams(), seed))

    def _streams(self) -> int:
        return 1

    def _start(self, index: PriorityIndex) -> None:
        self.index = index
        self._first = np.ones(index.num_streams, bool)

    def add(self, batch: Any, buffer_ids: Any = None) -> tuple[Any, Any, Any, Any]:
        """One transition, with the largest priority ever recorded; returns what Tianshou's buffer returns."""
        slots, returns, lengths, starts = ReplayBuffer.add(self, batch, buffer_ids)
        self.index.append(self._first)
        self._first = np.array(self.done[slots], bool).reshape(1)
        return slots, returns, lengths, starts

    def update(self, buffer: ReplayBuffer) -> Any:
        """Move another buffer's data here, with the largest priority; its sequences stay sequences."""
        stack_num, buffer.stack_num = buffer.stack_num, 1
        source = buffer.sample_indices(0)
        buffer.stack_num = stack_num
        slots = ReplayBuffer.update(self, buffer)
        if len(slots):
            # A row goes on where it follows, in its own buffer, the row that was moved before it.
            firsts = np.ones(len(slots), bool)
            before = np.asarray(buffer.prev(source))
            firsts[1:] = (before[1:] != source[:-1]) | (before[1:] == source[1:])
            self.index.append(firsts, stream=np.zeros(len(slots), np.int64))
            self._first = np.array(self.done[slots[-1:]], bool)
        return slots

    def sample_indices(self, batch_size: int | None) -> Any:
        """Slots drawn by priority; all of them, oldest first, if `batch_size` is 0."""
        return self._draw(batch_size)[0]

    def sample(self, batch_size: int | None) -> tuple[Any, Any]:
        """A batch drawn by priority, with its weights, and its slots."""
        slots, weights = self._draw(batch_size)
        batch = ReplayBuffer.__getitem__(self, slots)
        batch.weight = weights
        return batch, slots

    def __getitem__(self, index: Any) -> Any:
        """Rows by slot, with the importance-sampling weights they would have as a batch."""
        if isinstance(index, slice):
            index = self._draw(0)[0] if index == slice(None) else self._indices[: len(self)][index]
        batch = ReplayBuffer.__getitem__(self, index)
        weights = self.get_weight(index)
        largest = np.max(weights, initial=0.0)
        batch.weight = weights / largest if largest > 0.0 else weights
        return batch

    def get_weight(self, index: Any) -> Any:
        """Importance-sampling weights (N·P(i))^−β by slot (Schaul et al. 2016, Sec. 3.4), 0 for empty slots."""
        slots = np.asarray(index, np.int64) % self.maxsize
        weights, held = np.zeros(slots.shape), slots < len(self.index)
        ids = ids_in_slots(self.index, slots[held], TianshouError)
        chances = len(self.index) * self.index.probabilities(ids)
        weights[held] = chances ** -beta_at(self.beta, self.index.next_id)
        return weights[()]

    @property
    def weight(self) -> NDArray[np.float64]:
        """p^α of every slot, 0 for empty ones: what Tianshou keeps in a tree of this name. A copy."""
        masses = np.zeros(self.maxsize)
        ids = np.arange(self.index.oldest_id, self.index.next_id)
        masses[ids % self.maxsize] = self.index.priority(ids) ** getattr(
            self.index.prioritization, "alpha", 0.0
        )
        return masses

    def _draw(self, batch_size: int | None) -> tuple[Ints, NDArray[np.float64]]:
        if batch_size == 0:
            ids = np.arange(self.index.oldest_id, self.index.next_id)
            return ids % self.maxsize, np.ones(len(ids))
        ids, weights = self.index.sample(
            len(self) if batch_size is None else batch_size, beta_at(self.beta, self.index.next_id)
        )
        return ids % self.maxsize, weights

    def update_weight(self, index: Any, new_weight: Any) -> None:
        """New priorities from TD errors (Tianshou calls them weights), with backward decay."""
        if isinstance(new_weight, torch.Tensor):
            new_weight = new_weight.detach().cpu().numpy()
        ids = ids_in_slots(self.index, np.asarray(index, np.int64).reshape(-1), TianshouError)
        self.index.update(ids, np.asarray(new_weight, np.float64).reshape(-1))

    def set_beta(self, beta: Beta) -> None:
        """Change β of the importance-sampling weights."""
        self.beta = beta

    def end_episodes(self) -> None:
        """The environments were reset from outside: what comes next has no predecessor."""
        self._first[:] = True

    def reset(self, keep_statistics: bool = False) -> None:
        """Forget every transition."""
        ReplayBuffer.reset(self, keep_statistics)
        old = self.index
        self._start(PriorityIndex(old.capacity, old.prioritization, old.num_streams, self.seed))

    def set_batch(self, batch: Any) -> None:
        """Not offered: the priorities would belong to other transitions."""
        raise PserError("the data of a prioritized buffer cannot be replaced, got a batch: use add or update")

    @classmethod
    def from_data(cls, *args: Any, prioritization: Prioritization | None = None, **kwargs: Any) -> Any:
        """A full buffer of these rows (Tianshou's arguments), to be sampled as `prioritization` says."""
        rows = ReplayBuffer.from_data(*args, **kwargs)
        rows.last_index = np.array([len(rows) - 1])  # left at 0 by Tianshou, which would end a sequence there
        buffer = cls(rows.maxsize, prioritization)
        buffer.update(rows)
        return buffer

    def save_hdf5(self, path: str, compression: str | None = None) -> None:
        """Write the buffer and its priorities to an HDF5 file, as Tianshou does."""
        with h5py.File(path, "w") as file:
            to_hdf5(self.__getstate__(), file, compression=compression)

    @classmethod
    def load_hdf5(cls, path: str, device: str | None = None) -> Self:
        """Read what `save_hdf5` wrote; loading continues bit for bit."""
        with h5py.File(path, "r") as file:
            state = from_hdf5(file, device=device)
        if "index" not in state:
            raise PserError(
                f"{Path(path).name} holds a buffer without priorities: load it with Tianshou's own class, "
                "then call update of a prioritized buffer"
            )
        if ("buffer_num" in state) != issubclass(cls, PrioritizedVectorReplayBuffer):
            right = "PrioritizedVectorReplayBuffer" if "buffer_num" in state else "PrioritizedReplayBuffer"
            raise PserError(f"{Path(path).name} was saved by another class, got {cls.__name__}: use {right}")
        buffer = cls.__new__(cls)
        buffer.__setstate__(state)
        return buffer

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "index": np.frombuffer(index_to_bytes(self.index), np.uint8)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        index = index_from_bytes(state["index"].tobytes())
        super().__setstate__({**state, "index": index})


class PrioritizedVectorReplayBuffer(PrioritizedReplayBuffer, ReplayBufferManager):
    """The same for `buffer_num` environments, in step with each other or not."""

    _meta: Any

    def __init__(
        self,
        total_size: int,
        buffer_num: int,
        prioritization: Prioritization | None = None,
        *,
        beta: Beta = 0.5,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        """As the buffer for one environment; `total_size` transitions of all environments together."""
        require(buffer_num >= 1, "buffer_num must be at least 1", buffer_num, "count your environments")
        self.buffer_num = buffer_num
        super().__init__(total_size, prioritization, beta=beta, seed=seed, **kwargs)

    def _streams(self) -> int:
        return self.buffer_num

    def _start(self, index: PriorityIndex) -> None:
        super()._start(index)
        self._before = np.full(self.maxsize, NOWHERE)
        self._after = np.full(self.maxsize, NOWHERE)
        self._newest = np.full(self.buffer_num, NOWHERE)
        self._episodes = [(0.0, 0, 0)] * self.buffer_num

    @property
    def subbuffer_edges(self) -> Any:
        """One ring for all environments."""
        return np.array([0, self.maxsize])

    def __len__(self) -> int:
        return len(self.index)

    def add(self, batch: Any, buffer_ids: Any = None) -> tuple[Any, Any, Any, Any]:
        """One step of every environment, or of those named by `buffer_ids`."""
        streams = np.arange(self.buffer_num) if buffer_ids is None else np.asarray(buffer_ids, np.int64)
        rows = self._as_rows(batch)
        if len(rows) != len(streams):
            raise PserError(
                f"there must be one row for each of the {len(streams)} environments, got {len(rows)}: give buffer_ids"
            )
        slots = (self.index.next_id + np.arange(len(streams))) % self.maxsize
        done = rows.done.astype(bool)
        self._store(slots, rows)
        for slot, stream in zip(slots, streams, strict=True):
            self._link(int(slot), int(stream))
        self.index.append(self._first[streams], stream=streams)
        self._first[streams] = done
        self._size = len(self.index)
        self.last_index = self._newest.copy()
        ended = [
            self._count(*row) for row in zip(slots.tolist(), streams.tolist(), rows.rew, done, strict=True)
        ]
        returns, lengths, starts = zip(*ended, strict=True)
        return slots, np.array(returns), np.array(lengths), np.array(starts)

    def _as_rows(self, batch: Any) -> Any:
        rows = Batch({key: batch[key] for key in self._reserved_keys if key in batch.get_keys()})
        rows.done = np.logical_or(rows.terminated, rows.truncated)
        if self._save_only_last_obs:
            rows.obs = rows.obs[:, -1]
        if not self._save_obs_next:
            rows.pop("obs_next", None)
        elif self._save_only_last_obs:
            rows.obs_next = rows.obs_next[:, -1]
        return rows

    def _link(self, slot: int, stream: int) -> None:
        """Take the slot from its former transition and chain it to the environment's newest one."""
        if self._after[slot] != NOWHERE:
            self._before[self._after[slot]] = NOWHERE
        self._newest[self._newest == slot] = NOWHERE
        before = NOWHERE if self._first[stream] else self._newest[stream]
        self._before[slot], self._after[slot] = before, NOWHERE
        if before != NOWHERE:
            self._after[before] = slot
        self._newest[stream] = slot

    def _store(self, slots: Ints, rows: Any) -> None:
        rows.rew = np.asarray(rows.rew, float)
        if len(self._meta.get_keys()) == 0:
            self._meta = create_value(rows, self.maxsize, stack=False)
        try:
            self._meta[slots] = rows
        except ValueError:  # a key that no row had before, say in `info`
            alloc_by_keys_diff(self._meta, rows, self.maxsize, False)
            self._meta[slots] = rows

    def _count(self, slot: int, stream: int, reward: Any, done: bool) -> tuple[Any, int, int]:
        """Return, length and first slot of the episode: return and length are 0 while it runs."""
        total, length, start = self._episodes[stream]
        start = slot if length == 0 else start
        total, length = total + reward, length + 1
        self._episodes[stream] = (0.0, 0, slot) if done else (total, length, start)
        return (total, length, start) if done else (np.zeros_like(total), 0, start)

    @classmethod
    def from_data(cls, *args: Any, **kwargs: Any) -> Any:
        """Not offered: rows do not tell which environment they are of."""
        raise PserError(
            f"rows cannot fill a {cls.__name__}, got data only: use PrioritizedReplayBuffer.from_data"
        )

    def update(self, buffer: ReplayBuffer) -> Any:
        """Not offered, as in Tianshou: it would leave open which environment the data is of."""
        raise PserError(
            f"data cannot be moved into a buffer of {self.buffer_num} environments, got {type(buffer).__name__}: "
            "use PrioritizedReplayBuffer"
        )

    def prev(self, index: Any) -> Any:
        """The slot of the step before, or the same slot where an episode begins or its past was overwritten."""
        return _follow(self._before, index)

    def next(self, index: Any) -> Any:
        """The slot of the step after, or the same slot where an episode ends."""
        return _follow(self._after, index)

    def unfinished_index(self) -> Any:
        """The newest slots of the episodes that still run."""
        newest = self._newest[self._newest != NOWHERE]
        return newest[~self.done[newest].astype(bool)] if len(newest) else newest

    def get_buffer_indices(self, start: int, stop: int) -> Any:
        """Slots of an episode, from `start` to the one before `stop`, as the environment went through them."""
        slots = [int(stop - 1) % self.maxsize]
        while slots[-1] != start and self._before[slots[-1]] != NOWHERE:
            slots.append(int(self._before[slots[-1]]))
        return np.array(slots[::-1])


def _follow(links: Ints, index: Any) -> Any:
    slots = np.asarray(index, np.int64) % len(links)
    return np.where(links[slots] == NOWHERE, slots, links[slots])
