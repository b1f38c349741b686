"""TorchRL: a sampler for `ReplayBuffer(storage=..., sampler=PSERSampler(...))`.

The storage's leading dimension is time, the others are environments, as TorchRL lays data out with `ndim=2`; the
transition with id i lies in the i-th slot of the flattened storage (modulo its size). Where sequences end is read from
the storage's ("next", "done") and, if a collector wrote it, ("collector", "traj_ids"). Rows that do not tell (plain
tensors or lists, data without that key, whole trajectories) are each an episode of their own: nothing decays.
"""

import math
import warnings
from dataclasses import replace
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import is_tensor_collection
from torchrl.data.replay_buffers.samplers import PrioritizedSampler
from torchrl.data.replay_buffers.storages import Storage

from pser.errors import PserError
from pser.integrations._shared import (
    Beta,
    beta_at,
    ids_in_slots,
    index_from_bytes,
    index_to_bytes,
    require_prioritization,
    require_version,
)
from pser.integrations._torchrl_indices import (
    NOT_STORED,
    TorchRLError,
    all_written,
    flat_slots,
    rows_shape,
    same_slots,
)
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import PSER, Prioritization, Uniform

require_version("torchrl", "0.14", "0.15")

Key = str | tuple[str, ...]
Ints = NDArray[np.int64]

FILE = "pser.npz"
NO_PRIORITY = float(np.finfo(np.float32).min)
"""What TorchRL is told to write for data without a priority: no TD error is so, and float32 holds it exactly."""


class PSERSampler(
    PrioritizedSampler
):  # TorchRL updates priorities of this class alone; nothing of it is used
    """Samples a TorchRL storage by PSER, PER or uniformly. Its rules are those of `index`.

    New data takes the largest priority ever recorded, or the TD error it carries under the buffer's `priority_key`.
    The buffer must write in order (the default `RoundRobinWriter`).
    """

    reduction = "max"
    _index: PriorityIndex | None
    _written: list[Any]
    """TorchRL's indices of what was written and not yet taken in: the storage is only seen when sampling."""
    _ended: NDArray[np.bool_]
    """Of the last row of each stream: was it done?"""
    _trajectory: Ints
    """Of the last row of each stream: the trajectory it belongs to."""
    _warned: bool
    _marked: bool
    """Was the newest of `_written` told by `mark_update`? The buffer that wrote it tells it once more."""

    def __init__(
        self,
        prioritization: Prioritization | None = None,
        *,
        td_errors: Literal["squared", "plain"] | None = None,
        beta: Beta = 0.5,
        num_streams: int = 1,
        done_key: Key = ("next", "done"),
        trajectory_key: Key = ("collector", "traj_ids"),
        seed: int | None = None,
    ) -> None:
        """How to sample, and how to read what TorchRL hands over.

        `td_errors`: TorchRL's losses write δ² under "td_error" ("squared"); "plain" if you pass δ or |δ| yourself.
        `num_streams`: environments whose steps alternate in a storage with one dimension; with more dimensions they
        are counted by its shape.
        """
        self._prioritization = require_prioritization(prioritization, "PSERSampler(pser.PSER(), ...)")
        if td_errors not in ("squared", "plain"):
            raise PserError(
                f"td_errors must be 'squared' or 'plain', got {td_errors!r}: TorchRL's losses write δ², so 'squared' "
                "fits update_tensordict_priority"
            )
        self.td_errors = td_errors
        self.beta = beta
        self._num_streams = num_streams
        self._done_key = done_key
        self._trajectory_key = trajectory_key
        self._seed = seed
        self._empty()

    @property
    def index(self) -> PriorityIndex:
        """The priorities; there are none before the first `sample`."""
        if self._index is None:
            raise PserError(
                "the sampler has not seen its storage, got no sample yet: call ReplayBuffer.sample once"
            )
        return self._index

    @property
    def alpha(self) -> float:
        """α of the prioritization; setting it makes every mass anew (one pass over the memory)."""
        return getattr(self._prioritization, "alpha", 0.0)

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        if isinstance(self._prioritization, Uniform):
            raise PserError(f"pser.Uniform has no alpha, got {alpha!r}: use pser.PER or pser.PSER")
        self._prioritization = replace(self._prioritization, alpha=float(alpha))
        if self._index is not None:
            self._index.set_alpha(float(alpha))

    @property
    def device(self) -> torch.device:
        """Where the priorities are: always the CPU."""
        return torch.device("cpu")

    @property
    def beta(self) -> Beta:
        """β of the importance-sampling weights: a number, or a schedule over transitions added."""
        return self._beta

    @beta.setter
    def beta(self, beta: Beta) -> None:
        self._beta = beta

    @property
    def default_priority(self) -> float:
        """Stands for no priority: the row takes the largest ever recorded."""
        return NO_PRIORITY

    def add(self, index: Any) -> None:
        """One more transition (of every environment) was written."""
        self.extend(index)

    def extend(self, index: Any) -> None:
        """More transitions were written."""
        if not (self._marked and same_slots(self._written[-1], index)):
            self._written.append(index)
        self._marked = False

    def mark_update(self, index: Any, *, storage: Storage | None = None) -> None:
        """Transitions were written, through this buffer or another one of the same storage."""
        self._written.append(index)
        self._marked = True

    def sample(self, storage: Storage, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """Slots drawn by priority, and their importance-sampling weights under "priority_weight"."""
        if len(storage) == 0:
            raise TorchRLError(
                f"cannot sample {batch_size} transitions from an empty storage: add some first"
            )
        index = self._follow(storage)
        ids, weights = index.sample(batch_size, beta_at(self.beta, index.next_id))
        slots: Any = torch.as_tensor(ids % index.capacity)
        if storage.ndim > 1:
            slots = torch.unravel_index(slots, storage.shape)
        return slots, {"priority_weight": torch.as_tensor(weights.astype(np.float32))}

    @torch.no_grad()
    def update_priority(self, index: Any, priority: Any, *, storage: Storage | None = None) -> None:
        """New priorities from TD errors, with backward decay.

        For data just written it is the TD error on insertion. An index of -1 means data that was not stored, and is
        skipped. A slot that was overwritten since it was sampled gets
        the update of its former content: TorchRL names slots, not transitions.
        """
        if storage is None:
            raise TorchRLError(
                "update_priority needs the storage, got None: call ReplayBuffer.update_priority"
            )
        errors = torch.as_tensor(priority).detach().cpu().to(torch.float64).reshape(-1).numpy()
        given = None if (errors == NO_PRIORITY).all() else errors
        if given is not None and not np.isfinite(given).all():
            raise PserError(
                f"TD errors must be finite, got {given[~np.isfinite(given)][0]}: check the network"
            )
        if given is not None and self.td_errors == "squared":
            given = _root(given)
        if self._index is None and not self._written:  # data that was there before: TorchRL announces it so
            self._written.append(all_written(storage))
        slots = flat_slots(index, storage)
        if given is not None and len(given) not in (1, len(slots)):
            raise TorchRLError(
                f"there must be one priority, or one for each of the {len(slots)} indices, got {len(given)}: match them"
            )
        given = None if given is None else np.broadcast_to(given, slots.shape)
        if self._written and np.array_equal(slots, flat_slots(self._written[-1], storage)):
            self._follow(storage, given)
        elif given is not None:
            known = self._follow(storage)
            stored = slots != NOT_STORED
            known.update(ids_in_slots(known, slots[stored], TorchRLError), given[stored])

    def _follow(self, storage: Storage, last_td_errors: NDArray[np.float64] | None = None) -> PriorityIndex:
        """Take in what was written since, reading sequence ends from the storage."""
        index = self._index_for(storage)
        batches = [flat_slots(written, storage) for written in self._written]
        if batches:
            slots = np.concatenate(batches)
            expected = (index.next_id + np.arange(len(slots))) % index.capacity
            if not np.array_equal(slots, expected):
                raise PserError(
                    f"data must be written in order, got slot {slots[slots != expected][0]} instead of "
                    f"{expected[slots != expected][0]}: use RoundRobinWriter, and give the sampler to a new buffer"
                )
            # What was overwritten before it was read can be no predecessor: only the last `capacity` rows count.
            lost = max(0, len(slots) - index.capacity)
            firsts = np.ones(len(slots), bool)
            firsts[lost:] = self._firsts(*self._ends(storage, slots[lost:]), fresh=lost > 0)
            self._append(index, firsts, last_td_errors)
            self._written.clear()
            self._marked = False
        if len(index) != len(storage):
            raise PserError(
                f"the storage holds {len(storage)} transitions and the sampler knows {len(index)}: "
                "give the sampler when the ReplayBuffer is made, and load both together"
            )
        return index

    def _append(
        self, index: PriorityIndex, firsts: NDArray[np.bool_], last_td_errors: NDArray[np.float64] | None
    ) -> None:
        streams = (index.next_id + np.arange(len(firsts))) % index.num_streams
        plain = len(firsts) if last_td_errors is None else len(firsts) - len(last_td_errors)
        for start in range(0, plain, index.capacity):
            part = slice(start, min(start + index.capacity, plain))
            index.append(firsts[part], stream=streams[part])
        if last_td_errors is not None:
            index.append(firsts[plain:], stream=streams[plain:], td_error=last_td_errors)

    def _firsts(
        self, dones: NDArray[np.bool_], trajectories: Ints | None, *, fresh: bool
    ) -> NDArray[np.bool_]:
        """Which rows begin a sequence: the row before, of the same stream, was done or of another trajectory."""
        rows, streams = len(dones), len(self._ended)
        ended = np.concatenate([np.ones(streams, bool) if fresh else self._ended, dones])
        firsts = ended[:rows].copy()
        self._ended = ended[rows:]
        if trajectories is not None:
            names = np.concatenate([self._trajectory, trajectories])
            firsts |= names[:rows] != names[streams:]
            self._trajectory = names[rows:]
        return firsts

    def _ends(self, storage: Storage, slots: Ints) -> tuple[NDArray[np.bool_], Ints | None]:
        """Of these rows: the done flags, and the trajectories if they are stored."""
        data = storage[:]
        done = data.get(self._done_key, None) if is_tensor_collection(data) else None
        if done is None or done.numel() != len(storage):
            self._warn_that_nothing_decays()
            return np.ones(len(slots), bool), None
        trajectory = data.get(self._trajectory_key, None)
        rows = torch.as_tensor(slots, device=done.device)
        names = None if trajectory is None else trajectory.reshape(-1)[rows].cpu().numpy().astype(np.int64)
        return done.reshape(-1)[rows].cpu().numpy().astype(bool), names

    def _warn_that_nothing_decays(self) -> None:
        if isinstance(self._prioritization, PSER) and self._prioritization.reach and not self._warned:
            self._warned = True
            warnings.warn(
                f"the stored rows have no flag {self._done_key!r} each, so every row counts as an episode and no "
                "priority decays: give the right done_key, or use pser.PER",
                stacklevel=5,
            )

    def _index_for(self, storage: Storage) -> PriorityIndex:
        shape = rows_shape(storage)
        streams = math.prod(shape) if shape else self._num_streams
        # TorchRL rounds the number of steps up when the environments do not divide max_size.
        capacity = -(-storage.max_size // math.prod(shape)) * math.prod(shape)
        if self._index is None:
            self._index = PriorityIndex(capacity, self._prioritization, streams, self._seed)
            self._ended = np.ones(streams, bool)
            self._trajectory = np.full(streams, -1, np.int64)
        elif (self._index.capacity, self._index.num_streams) != (capacity, streams):
            raise PserError(
                f"the sampler was made for {self._index.capacity} transitions of {self._index.num_streams} streams, "
                f"got a storage for {capacity} of {streams}: make both with the same sizes"
            )
        return self._index

    def _empty(self) -> None:
        self._index = None
        self._written = []
        self._marked = False
        self._warned = False
        self._ended = np.ones(0, bool)
        self._trajectory = np.zeros(0, np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the settings, as tensors."""
        return {name: torch.as_tensor(array) for name, array in self._state().items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved state, bit for bit; one that does not fit is refused and nothing changes."""
        self._set_state({name: torch.as_tensor(value).cpu().numpy() for name, value in state_dict.items()})

    def dumps(self, path: Any) -> None:
        """Write the state into a folder, without pickle."""
        folder = Path(path).absolute()
        folder.mkdir(exist_ok=True)
        np.savez(folder / FILE, **self._state())  # type: ignore[arg-type]

    def loads(self, path: Any) -> None:
        """Go on from what `dumps` wrote; one that does not fit is refused and nothing changes."""
        with np.load(Path(path).absolute() / FILE, allow_pickle=False) as file:
            self._set_state(dict(file))

    def _state(self) -> dict[str, NDArray[Any]]:
        data = b"" if self._index is None else index_to_bytes(self._index)
        state: dict[str, NDArray[Any]] = {
            "index": np.frombuffer(data, np.uint8).copy(),
            "ended": self._ended.copy(),
            "trajectory": self._trajectory.copy(),
        }
        for number, written in enumerate(self._written):
            state[f"written_{number}"] = torch.as_tensor(written).cpu().numpy().copy()
        return state

    def _set_state(self, state: dict[str, NDArray[Any]]) -> None:
        index = index_from_bytes(state["index"]) if state["index"].size else None
        if index is not None and not _same_but_alpha(index.prioritization, self._prioritization):
            raise PserError(
                f"the saved sampler has {index.prioritization}, this one {self._prioritization}: "
                "make it with the saved settings"
            )
        if index is not None and self._index is not None and index.capacity != self._index.capacity:
            raise PserError(
                f"the saved sampler holds {index.capacity} transitions, this one {self._index.capacity}: "
                "make the storage with the saved max_size"
            )
        self._index = index
        self._prioritization = self._prioritization if index is None else index.prioritization
        self._marked = False
        self._ended, self._trajectory = state["ended"].copy(), state["trajectory"].copy()
        self._written = [
            torch.as_tensor(state[f"written_{number}"])
            for number in range(sum(name.startswith("written_") for name in state))
        ]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._prioritization}, td_errors={self.td_errors!r}, beta={self.beta})"
        )

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:
            raise TorchRLError(
                "a sampler cannot be shared between processes, got one to send: keep it where the learner is"
            )
        state = {**self.__dict__, "_rng": None}
        state["_index"] = None if self._index is None else index_to_bytes(self._index)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._index = None if state["_index"] is None else index_from_bytes(state["_index"])


def _same_but_alpha(one: Prioritization, other: Prioritization) -> bool:
    """Are the settings the same? α may have been scheduled."""
    if isinstance(one, Uniform) or isinstance(other, Uniform):
        return one == other
    return replace(one, alpha=other.alpha) == other


def _root(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """|δ| from δ²."""
    if (squares < 0.0).any():
        raise PserError(f"squared TD errors cannot be negative, got {squares.min()}: use td_errors='plain'")
    return np.sqrt(squares)
