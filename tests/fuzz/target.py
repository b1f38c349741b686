"""What must hold for a file, whatever it says: it is refused as damaged, or what it gives works."""

import functools
import io
import tempfile
from pathlib import Path

import numpy as np

import pser
from pser.errors import PserError
from pser.files.container import read_container, write_container

from .crafted import Parts, digest_of

HEAD = "save"
SHAPE = (70,)  # of a frame: small, and large enough that two changed pixels take less than half of it
FEW = 4096  # transitions: more are not walked through one by one


def seeds() -> list[bytes]:
    """Small files of every kind, with open episodes, pending steps, evictions."""
    made = [
        _memory(kind, n_step, frames)
        for n_step in (1, 3)
        for frames in ("frames", "compressed", "array", "both")
        for kind in _rules(n_step)
    ]
    return made + [_index(rule) for rule in _rules(1) + _rules(3)] + [_state(), *in_parts().values()]


@functools.cache
def in_parts() -> dict[str, bytes]:
    """The files of a memory saved in parts, by name: the head and what it names."""
    fields = {
        "screen": pser.Frames(SHAPE, stack=2, compress=True, capacity_bytes=200_000),
        "speed": pser.Array((2,), np.float32),
        "on": pser.Array((), np.bool_),
    }
    memory = pser.ReplayMemory(10, fields, num_envs=2, n_step=3, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        for steps in (4, 2, 3):
            _play(memory, "both", steps)
            memory.save_changes(Path(folder) / HEAD)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _rules(n_step):
    if n_step == 1:
        return [pser.PSER(), pser.PER(variant="rank"), pser.PSER(retain="decayed")]
    return [pser.PSER(weights="memory", decay="add"), pser.Uniform()]


def _memory(rule, n_step, frames) -> bytes:
    fields = {
        "screen": pser.Frames(SHAPE, stack=2),
        "speed": pser.Array((2,), np.float32),
        "on": pser.Array((), np.bool_),
    }
    compressed = pser.Frames(SHAPE, stack=2, compress=True, capacity_bytes=200_000)
    spaces = {"frames": fields["screen"], "compressed": compressed, "array": fields["speed"], "both": fields}
    space = spaces[frames]
    memory = pser.ReplayMemory(10, space, num_envs=2, prioritization=rule, n_step=n_step, seed=0)
    _play(memory, frames, 14)
    return _saved(memory)


def _play(memory, frames, steps) -> None:
    stack = np.zeros((memory.num_envs, 2, *SHAPE), np.uint8)
    off = np.zeros(memory.num_envs, bool)
    for t in range(steps):
        newest = stack[:, 1:].copy()
        newest[..., :2] = t + 1
        following = np.concatenate([stack[:, 1:], newest], axis=1)
        speed = np.full((memory.num_envs, 2), t, np.float32)
        both = [{"screen": s, "speed": speed, "on": off} for s in (stack, following)]
        given = {"array": (speed, speed + 1), "both": both}
        now, then = given.get(frames, (stack, following))
        memory.add(now, np.arange(memory.num_envs), np.ones(memory.num_envs), then, off, off | (t % 5 == 4))
        stack = following
    if len(memory):
        memory.update_priorities(memory.sample(4).ids, np.arange(4.0))


def _index(rule) -> bytes:
    index = pser.PriorityIndex(10, rule, num_streams=2, seed=0)
    for t in range(9):
        index.append([t % 4 == 0] * 2)
    index.update(index.sample(4)[0], np.arange(4.0))
    return _saved(index)


def _state() -> bytes:
    stream = io.BytesIO()
    write_container(
        stream, {"n": 3, "deep": {"a": np.arange(6.0).reshape(2, 3), "b": [np.zeros(2, np.uint8), None]}}
    )
    return stream.getvalue()


def _saved(thing) -> bytes:
    stream = io.BytesIO()
    thing.save(stream)
    return stream.getvalue()


def _in_place_of(name: str, data: bytes) -> dict[str, bytes]:
    """The files of a save in parts, one of them another; if it is a part, the head names it by its checksum."""
    files = dict(in_parts())
    del files[name]
    if name == HEAD:
        return files | {HEAD: data}
    head = Parts(files[HEAD])
    for part in [*head.header["parts"], *head.header["cells"]]:
        if name == f"{HEAD}.{part[0]:08x}":
            part[0] = digest_of(data)
    return files | {HEAD: head.joined(), f"{HEAD}.{digest_of(data):08x}": data}


def _try_parts(data: bytes) -> str:
    results = set()
    for name in in_parts():
        with tempfile.TemporaryDirectory() as folder:
            for each, content in _in_place_of(name, data).items():
                (Path(folder) / each).write_bytes(content)
            try:
                memory = pser.ReplayMemory.load(Path(folder) / HEAD)
            except PserError as error:
                if "\n" in str(error):
                    raise AssertionError(f"more than one line: {error}") from error
            else:
                results.add("loaded")
                _use_memory(memory)
    return "loaded" if results else "refused"


def try_file(data: bytes) -> str:
    """Load the bytes as what they say they are; use what comes out. Anything but a PserError is a fault."""
    if (
        b'"ReplayMemoryPart"' in data[:64]
        or b'"ReplayMemoryCells"' in data[:64]
        or b'"parts"' in data[:20_000]
    ):
        return _try_parts(data)
    loaders = {
        b'"ReplayMemory"': (pser.ReplayMemory.load, _use_memory),
        b'"PriorityIndex"': (pser.PriorityIndex.load, _use_index),
        b'"State"': (read_container, lambda _: None),
    }
    named = [pair for kind, pair in loaders.items() if kind in data[:64]]
    result = "refused"
    for load, use in named or loaders.values():
        try:
            thing = load(io.BytesIO(data))
        except PserError as error:
            if "\n" in str(error):
                raise AssertionError(f"more than one line: {error}") from error
        else:
            result = "loaded"
            use(thing)
    return result


def _use_memory(memory) -> None:
    _use_index(memory.index)
    fields = memory._fields
    sizes = sum(int(np.prod(field.row_shape)) * field.dtype.itemsize for field in fields.values())
    if memory.num_envs > 64 or sizes > 2**16 or memory.capacity > FEW:
        return
    if len(memory):
        memory.sample(3)

    def rows(value):
        made = {
            name: np.full((memory.num_envs, *field.row_shape), value, field.dtype)
            for name, field in fields.items()
        }
        return made.get("", made)

    action = np.zeros((memory.num_envs, *memory._action.shape), memory._action.dtype)
    flags = np.zeros(memory.num_envs, bool)
    for t in range(3):
        memory.add(rows(1), action, np.zeros(memory.num_envs), rows(1), flags, flags | (t == 1))
    memory.end_episodes()
    memory.check_invariants()
    if len(memory):
        memory.sample(3)
    stats = memory.stats()
    if (
        max(stats["added"], stats["updates_applied"], stats["updates_skipped_stale"]) < 2**61
    ):  # else a count may be full
        pser.ReplayMemory.load(io.BytesIO(_saved(memory)))


def _use_index(index) -> None:
    if index.capacity > FEW:
        return
    index.check_invariants()
    if len(index):
        ids, weights = index.sample(5)
        assert ((weights > 0) & (weights <= 1)).all()
        index.update(ids, np.linspace(-2, 2, 5))
        index.check_invariants()
    index.stats()
