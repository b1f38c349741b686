"""Files from elsewhere: right checksums, wrong numbers. Each is refused as damaged; nothing crashes or hangs."""

import io
import json
import random
import struct

import numpy as np
import psutil
import pytest

import pser
from fuzz.crafted import Choices, Parts, mutated
from fuzz.target import seeds, try_file
from model import Rules
from pser.errors import DamagedFileError

from .test_save import continue_memory, grown_index, grown_memory


def saved(thing):
    stream = io.BytesIO()
    thing.save(stream)
    return stream.getvalue()


@pytest.fixture(scope="module")
def memory_file():
    """Frames and an array, n-step, two of three streams with pending steps, the ring full."""
    memory, games = grown_memory(Rules(), 20, 3, "dict", capacity=12)
    continue_memory(memory, games, np.random.default_rng(0), 20, True)
    return saved(memory)


def put(array, number, kind="<q", at=0):
    struct.pack_into(kind, array, at * struct.calcsize(kind), number)


FRAMES, FIELD = "frames/screen", "observation/n"
WRONG_ARRAYS = {
    "a place beyond the ring": (f"{FRAMES}/places/rows", 10**6, "<i"),
    "a negative place": (f"{FRAMES}/places/rows", -1, "<i"),
    "pending start beyond n_step": ("pending/start", 3, "<q"),
    "pending start negative": ("pending/start", -1, "<q"),
    "pending start huge": ("pending/start", 2**62, "<q"),
    "pending count beyond n_step": ("pending/count", 3, "<q"),
    "pending count negative": ("pending/count", -5, "<q"),
    "pending count huge": ("pending/count", 2**40, "<q"),
    "another next frame": (f"{FRAMES}/next_frame", 7, "<q"),
    "a next frame far beyond": (f"{FRAMES}/next_frame", 2**63 - 1, "<q"),
    "a negative next frame": (f"{FRAMES}/next_frame", -1, "<q"),
    "a stream's frame of the future": (f"{FRAMES}/stream_stack", 2**50, "<q"),
    "a stream's frame below −1": (f"{FRAMES}/stream_stack", -2, "<q"),
    "an infinite return": ("reward/rows", float("inf"), "<f"),
    "a discount of 2": ("discount/rows", 2.0, "<f"),
    "a discount that is NaN": ("discount/rows", float("nan"), "<f"),
    "a flag of 2": ("terminated/rows", 2, "<B"),
    "at_start of 255": ("at_start", 255, "<B"),
    "a mass that is NaN": ("index", float("nan"), "<d"),
    "a mass that is infinite": ("index", float("inf"), "<d"),
    "a mass that is negative": ("index", -1.0, "<d"),
}


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_a_number_in_an_array_that_no_history_could_have_left_is_refused(case, memory_file):
    name, number, kind = WRONG_ARRAYS[case]
    parts = Parts(memory_file)
    put(parts.array(name), number, kind)
    with pytest.raises(DamagedFileError):
        pser.ReplayMemory.load(io.BytesIO(parts.joined()))


def test_the_frames_of_an_unfinished_transition_must_be_there(memory_file):
    parts = Parts(memory_file)
    counts = np.frombuffer(bytes(parts.array("pending/count")), np.int64)
    starts = np.frombuffer(bytes(parts.array("pending/start")), np.int64)
    stream = int(np.argmax(counts))
    assert counts[stream] > 0
    first = (stream * 3 + starts[stream]) * 3
    for wrong in (-1, 2**40):
        parts = Parts(memory_file)
        put(parts.array(f"{FRAMES}/pending"), wrong, at=int(first))
        with pytest.raises(DamagedFileError):
            pser.ReplayMemory.load(io.BytesIO(parts.joined()))


@pytest.mark.parametrize("name", ["pending/reward", "pending/priority"])
def test_the_numbers_of_an_unfinished_transition_must_make_sense(name, memory_file):
    parts = Parts(memory_file)
    array = parts.array(name)
    for at in range(len(array) // 8):
        put(array, float("inf"), "<d", at)
    with pytest.raises(DamagedFileError):
        pser.ReplayMemory.load(io.BytesIO(parts.joined()))


WRONG_HEADERS = {
    "settings": [None, [], {}, "x"],
    "settings.capacity": [0, -1, 1.5, None, "12", True, 10**30, 13],
    "settings.num_envs": [0, 2, 4, 2**60, None],
    "settings.n_step": [0, 1, 2, 4, 2**60, None, 2.0],
    "settings.gamma": [-1.0, 2.0, float("nan"), None, "x"],
    "settings.reward_dtype": ["<f8", "|O", "x", None, 4],
    "settings.prioritization": [None, {}, {"type": "PSER", "alpha": 7.0}, {"type": "object"}],
    "settings.observation": [None, [], [["", {}]], {"a": 1}, [["screen"]]],
    "settings.action": [None, {"type": "Array", "shape": [2], "dtype": "<i8"}],
    "state.next_id": [-1, 0, 2, 2**62 + 1, 2**70, 1.5, None, True, "9"],
    "state.oldest_id": [-1, 2**40, None, "x"],
    "state.max_priority": [-1.0, 0.0, float("nan"), float("inf"), None],
    "state.last_id": [None, [], [0], [0, 1, 2**40], [-2, 0, 0], ["a", "b", "c"]],
    "state.updates_applied": [-1, 2**63, None, 0.5],
    "state.decayed_mass_seen": [float("nan"), -1.0, "x"],
    "state.frames": [
        None,
        {},
        {"frames/screen/next_frame": -1},
        {"frames/screen/next_frame": 2**70},
        {"x": 1},
    ],
    "state.rng": [None, {}, {"bit_generator": "MT19937"}, {"bit_generator": "PCG64", "state": {"state": -1}}],
    "arrays": [None, [], {}, [["index", -1]], [["index", 2**62]], [["index"]], [[1, 2, 3]], "x"],
}


@pytest.mark.parametrize("key", WRONG_HEADERS)
def test_a_header_that_makes_no_sense_is_refused_as_damaged(key, memory_file):
    for wrong in WRONG_HEADERS[key]:
        parts = Parts(memory_file)
        *path, last = key.split(".")
        value = parts.header
        for part in path:
            value = value[part]
        assert value[last] != wrong
        value[last] = wrong
        with pytest.raises(DamagedFileError):
            pser.ReplayMemory.load(io.BytesIO(parts.joined()))
        del value[last]
        with pytest.raises(DamagedFileError):
            pser.ReplayMemory.load(io.BytesIO(parts.joined()))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"kind": 3}',
    ],
    ids=lambda text: text[:12].decode("latin1"),
)
@pytest.mark.parametrize("kind", [pser.ReplayMemory, pser.PriorityIndex])
def test_a_header_that_is_not_json_or_too_deep_is_refused_as_damaged(kind, text, memory_file):
    with pytest.raises(DamagedFileError):
        kind.load(io.BytesIO(Parts(memory_file).joined(encoded=text)))


def test_a_predecessor_out_of_range_is_refused():
    parts = Parts(saved(grown_index(Rules(), 9)))
    put(parts.array("index"), 37, "<i", at=16 * 2)  # after the sixteen masses
    with pytest.raises(DamagedFileError, match="predecessor"):
        pser.PriorityIndex.load(io.BytesIO(parts.joined()))


def test_a_file_may_name_a_large_capacity_without_taking_the_memory_for_it():
    parts = Parts(saved(grown_index(Rules(weights="memory"), 5)))
    parts.header["settings"]["capacity"] = 2**26  # two gigabytes, once it is full
    process = psutil.Process()
    before = process.memory_info().rss
    index = pser.PriorityIndex.load(io.BytesIO(parts.joined()))
    index.update(index.sample(4)[0], np.ones(4))
    assert len(index) == 15
    assert process.memory_info().rss - before < 64 << 20


def test_thousands_of_crafted_files_are_refused_or_work():
    rng, files = random.Random(7), seeds()
    results = [try_file(mutated(files, Choices(rng.randbytes(64)))) for _ in range(1500)]
    assert 0 < results.count("loaded") < results.count("refused")


def test_parts_put_together_again_are_the_file(memory_file):
    assert Parts(memory_file).joined() == memory_file
    assert json.loads(json.dumps(Parts(memory_file).header)) == Parts(memory_file).header
