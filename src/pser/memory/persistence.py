"""A memory as files: written whole, flushed to its folder, and read again."""

from typing import TYPE_CHECKING, Any, TypeVar

from pser.files import archive
from pser.files.container import array_of
from pser.memory import saving
from pser.memory.cells import blocks_in_use, saved_cells
from pser.memory.columns import Sizes, check_steps, columns_of
from pser.memory.disk import DiskFile, opened_folder
from pser.memory.index import check_saved_sizes, is_in_slots, saved_bytes
from pser.memory.parts import head_layout, saved_parts
from pser.memory.recovery import reopen
from pser.memory.storage import Arrays, layout_of, used_bytes
from pser.spec import WHOLE, action_field, observation_fields

if TYPE_CHECKING:
    from pser.memory.replay import ReplayMemory

Kind = TypeVar("Kind", bound="ReplayMemory")


def content_of(memory: "ReplayMemory", counters: dict[str, int]) -> dict[str, Any]:
    """What a file tells beside its arrays."""
    settings = {
        "capacity": memory.capacity,
        "observation": [[name, saving.to_json(field)] for name, field in memory._fields.items()],
        "action": saving.to_json(memory._action),
        "num_envs": memory.num_envs,
        "prioritization": saving.to_json(memory.prioritization),
        "n_step": memory.n_step,
        "gamma": memory.gamma,
        "reward_dtype": memory._real.str,
    }
    return {"settings": settings, "state": {**memory._index.state(), "frames": counters}}


def changing_arrays(memory: "ReplayMemory") -> Arrays:
    """The arrays in which anything may change at any time: priorities, and what is unfinished."""
    storage = memory._storage
    return memory._index.state_arrays() | {name: storage.arrays[name] for name in head_layout(storage.layout)}


def write(memory: "ReplayMemory", path: archive.Place) -> None:
    """All of it, into one file or stream."""
    with memory._index.locked():
        counters = memory._storage.counters()
        arrays = memory._index.state_arrays() | memory._storage.used(memory._index.next_id, counters)
        archive.write(path, saving.KIND, content_of(memory, counters), arrays)


def flush(memory: "ReplayMemory", disk: DiskFile) -> None:
    """What the mapped file of a memory on disk does not hold, beside it; then all is on disk."""
    with memory._index.locked():
        disk.sync()
        content = content_of(memory, memory._storage.counters()) | {"disk": disk.identity}
        archive.write(disk.head, saving.KIND, content, changing_arrays(memory))


def load(cls: type[Kind], path: archive.Place) -> Kind:
    """The memory that a file, a stream or a folder holds; everything is checked before it is allocated."""
    disk = opened_folder(path)
    with archive.reading(path if disk is None else disk.head, saving.KIND) as file:
        settings, state = file.content["settings"], file.content["state"]
        saved = {name: saving.field_from_json(field) for name, field in settings["observation"]}
        fields = observation_fields(saved.get(WHOLE, saved))
        action, real = (
            saving.field_from_json(settings["action"]),
            array_of(settings["reward_dtype"], [])[0],
        )
        capacity, envs, n_step = settings["capacity"], settings["num_envs"], settings["n_step"]
        next_id, counters = state["next_id"], state["frames"]
        rule = saving.prioritization_from_json(settings["prioritization"])
        check_saved_sizes(capacity, envs, state)
        check_steps(n_step, settings["gamma"])
        sizes = Sizes(capacity, envs, n_step)
        layout = layout_of(columns_of(fields, sizes), action_field(action), sizes, real)
        expected = used_bytes(layout, next_id, counters)
        parts = saved_parts(path, file, layout, counters)
        cells = saved_cells(path, file, blocks_in_use(capacity, envs, next_id), rule)
        in_slots = cells is None and is_in_slots(file)
        if parts is not None or disk is not None:
            expected = {name: expected[name] for name in head_layout(layout)}
        kept_bytes = {} if cells else saved_bytes(rule, capacity, envs, next_id, in_slots)
        file.require(kept_bytes | expected)  # before anything of such a size is allocated
        memory = cls(
            capacity,
            fields.get(WHOLE, fields),
            action,
            envs,
            rule,
            n_step,
            settings["gamma"],
            reward_dtype=real,
            storage="memory" if disk is None else "disk",
            path=disk,
        )
        kept = {} if cells else memory._index.state_arrays(next_id, in_slots)
        arrays = memory._storage.used(next_id, counters)
        if disk is not None:  # what the file of the arrays tells of a crash is needed first
            arrays = {name: arrays[name].copy() for name in expected}
        file.fill(kept | {name: arrays[name] for name in expected})
        if disk is not None:
            reopen(memory, disk, arrays, state, in_slots)
            return memory
        if parts is not None:
            memory._saved = parts.fill(memory._storage.arrays, memory._history)
        if cells is not None:
            cells.fill(memory._index._kernel)
        memory._storage.check(next_id, counters)
        memory._index.set_state(state, in_slots)
        if cells is not None and memory._saved is not None:
            memory._saved.cells, memory._saved.moment = cells.files, memory._index._kernel.track()
    return memory
