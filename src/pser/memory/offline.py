"""Data that was played elsewhere: arrays and Minari datasets into a memory, and a memory out into a dataset.

Everything keeps its dtype and its bits. Minari is imported when a dataset is named or written, and not before.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pser.errors import PserError
from pser.memory.arrays import to_numpy
from pser.spec import Array

if TYPE_CHECKING:
    from pser.memory.replay import ReplayMemory

CHUNK_ROWS = 8192
"""Rows added or read at once."""


def spec_of(value: Any) -> Any:
    """The spec of rows like these: their shape and dtype, for each field of a dict."""
    if isinstance(value, Mapping):
        return {name: spec_of(part) for name, part in value.items()}
    return Array(value.shape[1:], value.dtype)


def rows_of(value: Any, part: Any) -> Any:
    """Some rows of an array, or of every array of a dict."""
    if isinstance(value, Mapping):
        return {name: array[part] for name, array in value.items()}
    return value[part]


def arrays_of(value: Any, what: str) -> Any:
    """Arrays of any kind as NumPy's."""
    if isinstance(value, Mapping):
        return {name: to_numpy(part, f"{what}[{name!r}]") for name, part in value.items()}
    return to_numpy(value, what)


def reward_dtype_of(reward: npt.NDArray[Any]) -> Any:
    """float32 if that holds every reward, else float64."""
    return np.float32 if reward.dtype in (np.float32, np.float16) else np.float64


def fill(memory: "ReplayMemory", *columns: Any, **given: Any) -> None:
    """Add rows in the order they were played, to the first stream."""
    rows = {
        len(part)
        for column in columns
        for part in (column.values() if isinstance(column, Mapping) else [column])
    }
    if len(rows) != 1:
        raise PserError(f"every array must have as many rows, got {sorted(rows)}: one row for each step")
    for start in range(0, rows.pop(), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        chunk = [rows_of(column, part) for column in columns]
        more = {name: value[part] for name, value in given.items() if value is not None}
        memory.add(*chunk, **more, stream=np.zeros(len(chunk[2]), np.int64))


def episodes_in(dataset: Any) -> Iterator[tuple[Any, ...]]:
    """Of each episode of a Minari dataset: observation, action, reward, next observation, terminated, truncated."""
    for episode in dataset.iterate_episodes():
        seen, actions = (_fields(value, episode.id) for value in (episode.observations, episode.actions))
        truncated = np.array(episode.truncations, bool)
        if len(truncated):
            truncated[-1] |= not episode.terminations[-1]  # the data ends there, whatever its flag says
        yield (
            rows_of(seen, slice(None, -1)),
            actions,
            np.asarray(episode.rewards),
            rows_of(seen, slice(1, None)),
            np.asarray(episode.terminations, bool),
            truncated,
        )


def opened(dataset: Any) -> Any:
    """A Minari dataset, itself or by its name."""
    return _minari().load_dataset(dataset) if isinstance(dataset, str) else dataset


def write_minari(memory: "ReplayMemory", dataset_id: str, **options: Any) -> Any:
    """The memory's transitions as a Minari dataset of their episodes; returns the dataset."""
    if memory.n_step != 1:
        raise PserError(
            f"a dataset holds single steps, got a memory with n_step={memory.n_step}: keep one with n_step=1 for it"
        )
    minari = _minari()
    spaces = {"observation_space": memory._fields.get("", memory._fields), "action_space": memory._action}
    for name, spec in spaces.items():
        options.setdefault(name, None if "env" in options else _space(spec))
    buffers = [_buffer(memory, ids) for ids in episode_ids(memory)]
    return minari.create_dataset_from_buffers(dataset_id, buffers, jpeg_encoding=False, **options)


def episode_ids(memory: "ReplayMemory") -> list[npt.NDArray[np.int64]]:
    """The ids of each episode in memory, as far as it is retained, in the order in which they began."""
    columns = memory.index.columns()
    episodes: list[list[int]] = []
    newest: dict[int, int] = {}  # id → the episode that ends there so far
    for number, back in zip(columns.ids.tolist(), columns.back.tolist(), strict=True):
        place = newest.pop(number - back, None) if back else None
        if place is None:
            place = len(episodes)
            episodes.append([])
        episodes[place].append(number)
        newest[number] = place
    return [np.array(ids, np.int64) for ids in episodes]


def _buffer(memory: "ReplayMemory", ids: npt.NDArray[np.int64]) -> Any:
    batch = memory[ids]
    terminated = batch.terminated
    truncated = np.zeros(len(ids), bool)
    truncated[-1] = not terminated[-1]
    return _minari().data_collector.EpisodeBuffer(
        observations=_joined(batch.observation, batch.next_observation, ids),
        actions=batch.action,
        rewards=batch.reward,
        terminations=terminated,
        truncations=truncated,
    )


def _joined(now: Any, after: Any, ids: npt.NDArray[np.int64]) -> Any:
    """The observations of an episode and its final one; each must be what was seen after the step before."""
    if isinstance(now, dict):
        return {name: _joined(now[name], after[name], ids) for name in now}
    between = np.ascontiguousarray(now[1:]), np.ascontiguousarray(after[:-1])
    if between[0].tobytes() != between[1].tobytes():
        different = [i for i in range(len(ids) - 1) if now[i + 1].tobytes() != after[i].tobytes()]
        raise PserError(
            f"a dataset holds one observation between two steps, got two after id {ids[different[0]]}: "
            "end the episode there when adding"
        )
    return np.concatenate([now, after[-1:]])


def _space(spec: Any) -> Any:
    """A Gymnasium space that holds every value of a spec."""
    from gymnasium import spaces

    if isinstance(spec, Mapping):
        return spaces.Dict({name: _space(part) for name, part in spec.items()})
    if spec.dtype.kind == "b":
        return spaces.MultiBinary(spec.row_shape or 1)
    if spec.dtype.kind in "iu":
        bounds = np.iinfo(spec.dtype)
        return spaces.Box(bounds.min, bounds.max, spec.row_shape, spec.dtype)
    return spaces.Box(-np.inf, np.inf, spec.row_shape, spec.dtype)


def _fields(value: Any, episode: int) -> Any:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, np.ndarray) for part in value.values()):
        return dict(value)
    raise PserError(
        f"observations and actions must be arrays or a dict of arrays, got {type(value).__name__} in "
        f"episode {episode}: flatten the dataset's spaces first"
    )


def _minari() -> Any:
    try:
        import minari
    except ModuleNotFoundError:
        raise PserError("a named dataset needs the minari package: pip install 'pser[minari]'") from None
    return minari
