"""SEMANTICS: saving. A loaded memory continues bit for bit; a damaged file is refused; no pickle; atomic."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pser
from model import Adaptive, Rules
from pser.errors import PserError
from strategies import as_prioritization, memory_pair

from .dumps import dump_index, dump_memory, saved_bytes
from .games import FrameGame, MemoryDriver

KINDS = [
    Rules(),
    Rules(decay="add", decay_from="priority", decay_on_insert=False, stratified=False, weights="memory"),
    Rules(window=None, rho=0.65, alpha=1.0, eps=0.0, eta=0.0),
    Rules(window=Adaptive(floor=0.0123, limit=7), rho=0.8),
    Rules(kind="per", alpha=0.6),
    Rules(kind="rank", alpha=0.7, weights="memory"),
    Rules(kind="uniform", stratified=False),
]
NAMES = ["default", "add", "derived", "adaptive", "per", "rank", "uniform"]


def grown_index(rules, steps, capacity=37):
    index = pser.PriorityIndex(capacity, as_prioritization(rules), num_streams=3, seed=4)
    continue_index(index, np.random.default_rng(0), steps, start=True)
    return index


def continue_index(index, rng, steps, start=False):
    """Random appends, samples and updates; returns all that came out."""
    out = []
    for t in range(steps):
        first = (rng.random(3) < 0.1) | (start and t == 0)
        td = rng.normal(size=3)
        out.append(index.append(first, td_error=td if t % 3 else None).tolist())
        ids, weights = index.sample(8, beta=0.4)
        out += [ids.tolist(), weights.tobytes()]
        out.append(index.update(ids, rng.normal(size=8)))
    return out


def test_a_loaded_index_knows_the_least_priority_that_was_ever_held(tmp_path):
    """What decays to just the least priority now held is compared as if there had been no saving.

    One such decay in fifty ends in another last bit if the least priority is taken from what is held.
    """
    rng = np.random.default_rng(0)
    for window in rng.integers(1, 7, 300).tolist():
        td_error = rng.uniform(0.01, 100.0)
        rules = pser.PSER(alpha=0.6, eps=0.0, eta=0.0, rho=0.65, window=window)
        index = pser.PriorityIndex(8, rules, seed=0)
        index.append([True], priority=[1e-9])
        for i in range(8):  # the small one is overwritten
            index.append([i == 0], priority=[0.65**window * td_error])
        index.save(tmp_path / "index")
        loaded = pser.PriorityIndex.load(tmp_path / "index")
        for one in (index, loaded):
            one.update([8], [td_error])
        assert loaded.state_arrays()["index"].tobytes() == index.state_arrays()["index"].tobytes()


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("rules", KINDS, ids=NAMES)
def test_a_copy_of_an_index_continues_bit_for_bit_and_is_its_own(rules, how):
    index = grown_index(rules, 60)
    before = dump_index(index)
    copied = COPIES[how](index)
    assert dump_index(copied) == before
    out = continue_index(copied, np.random.default_rng(1), 20)
    assert dump_index(index) == before
    assert continue_index(index, np.random.default_rng(1), 20) == out


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("frames", [True, False], ids=["frames", "array"])
def test_a_copy_of_a_memory_continues_bit_for_bit_and_is_its_own(frames, n_step, how):
    observation = pser.Frames((2,), stack=3) if frames else pser.Array((3, 2), np.uint8)
    memory = pser.ReplayMemory(30, observation, num_envs=3, n_step=n_step, seed=0)
    games = [FrameGame((2,), 3, seed=e) for e in range(3)]
    continue_memory(memory, games, np.random.default_rng(0), 25, False)
    before = dump_memory(memory)
    copied = COPIES[how](memory)
    assert dump_memory(copied) == before
    out = continue_memory(copied, copy.deepcopy(games), np.random.default_rng(1), 20, False)
    assert dump_memory(memory) == before
    assert continue_memory(memory, games, np.random.default_rng(1), 20, False) == out


def test_a_file_of_the_first_version_still_loads():
    index = pser.PriorityIndex.load(Path(__file__).parents[1] / "data" / "earlier" / "index-replayed.pser")
    index.check_invariants()
    assert index.prioritization == pser.PSER()
    stats = index.stats()
    assert (stats["size"], stats["added"], stats["replays_max"]) == (12, 30, 3)
    assert stats["total_mass"] == 12.373888812459947
    assert stats["decayed_share"] == 0.02468918757472708
    assert stats["mass_from_decay"] == pytest.approx(0.0870932572)  # where it can be told
    ids, weights = index.sample(6, 0.5)
    assert ids.tolist() == [24, 27, 29, 18, 20, 23]
    assert weights[0] == 0.8199202414017486


def test_an_index_of_the_first_version_takes_the_least_priority_it_holds():
    index = grown_index(Rules(), 40)
    state = index.state()
    del state["min_priority"]
    index.set_state(state)
    index.check_invariants()
    assert index.state()["min_priority"] == min(
        1.0, index.priority(np.arange(index.oldest_id, index.next_id)).min()
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("next_id", 5),
        ("next_id", 2**63 - 1),
        ("oldest_id", -1),
        ("oldest_id", 21),
        ("max_priority", float("nan")),
        ("max_priority", 0.0),
        ("min_priority", -1.0),
        ("min_priority", 10.0),
        ("last_id", [20]),
        ("last_id", [-2]),
        ("last_id", [0, 0]),
        ("updates_applied", -1),
        ("decayed_mass_seen", float("inf")),
    ],
)
def test_a_state_that_no_history_leaves_behind_is_refused(name, value):
    index = pser.PriorityIndex(8, pser.PSER(), seed=0)
    for i in range(20):
        index.append([i == 0], priority=[1.0 + i])
    with pytest.raises(PserError):
        index.set_state({**index.state(), name: value})


@pytest.mark.parametrize("rules", [Rules(), Rules(kind="rank"), Rules(kind="uniform")], ids=lambda r: r.kind)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_masses_and_priorities_that_no_history_leaves_behind_are_refused(rules, value):
    for place in range(0, 56 * 8, 8):  # every float64 and every pair of smaller numbers in the first block
        index = pser.PriorityIndex(16, as_prioritization(rules), seed=0)
        for i in range(16):
            index.append([i == 0])
        index.state_arrays()["index"][place : place + 8] = np.frombuffer(
            np.float64(value).tobytes(), np.uint8
        )
        try:
            index.set_state(index.state())
        except PserError:
            continue
        index.check_invariants()
        assert all(np.isfinite(number) for number in index.stats().values())
        index.update(index.sample(32)[0], np.ones(32))
        index.check_invariants()


@pytest.mark.parametrize("steps", [0, 1, 7, 12, 40])
@pytest.mark.parametrize("rules", KINDS, ids=NAMES)
def test_a_loaded_index_continues_bit_for_bit(rules, steps, tmp_path):
    index = grown_index(rules, steps)
    index.save(tmp_path / "index")
    loaded = pser.PriorityIndex.load(tmp_path / "index")
    assert dump_index(loaded) == dump_index(index)
    loaded.check_invariants()
    results = [continue_index(i, np.random.default_rng(9), 20, start=steps == 0) for i in (index, loaded)]
    assert results[0] == results[1]
    assert dump_index(loaded) == dump_index(index)


def grown_memory(rules, steps, n_step, frames, capacity=29):
    observation = (
        {"screen": pser.Frames((2, 3), stack=3), "n": pser.Array((), np.int64)} if frames == "dict" else None
    )
    if frames is True:
        observation = pser.Frames((2, 3), stack=3)
    elif frames is False:
        observation = pser.Array((3, 2, 3), np.uint8)
    memory = pser.ReplayMemory(
        capacity=capacity,
        observation=observation,
        action=pser.Array((), np.int64),
        num_envs=3,
        prioritization=as_prioritization(rules),
        n_step=n_step,
        seed=4,
    )
    return memory, [FrameGame((2, 3), 3, seed=e) for e in range(3)]


def continue_memory(memory, games, rng, steps, as_dict):
    out = []
    for t in range(steps):
        ends = [str(rng.choice(["", "", "", "", "terminated", "truncated", "life"])) for _ in games]
        rows = [game.step(end) for game, end in zip(games, ends, strict=True)]
        columns = [np.stack([np.asarray(r[c]) for r in rows]) for c in range(4)]
        if as_dict:
            columns[:2] = [{"screen": x, "n": np.arange(3) + t} for x in columns[:2]]
        ids = memory.add(columns[0], rng.integers(9, size=3), rng.normal(size=3), *columns[1:])
        out.append(ids.tolist())
        if len(memory):
            batch = memory.sample(8, beta=0.4)
            observation = batch.observation["screen"] if as_dict else batch.observation
            following = batch.next_observation["screen"] if as_dict else batch.next_observation
            parts = (
                observation,
                batch.action,
                batch.reward,
                following,
                batch.discount,
                batch.weights,
                batch.ids,
            )
            out += [np.ascontiguousarray(part).tobytes() for part in parts]
            out.append(memory.update_priorities(batch.ids, rng.normal(size=8)))
    return out


@pytest.mark.parametrize("steps", [0, 2, 11, 40])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("frames", [True, False, "dict"], ids=["frames", "array", "dict"])
def test_a_loaded_memory_continues_bit_for_bit(frames, n_step, steps, tmp_path):
    memory, games = grown_memory(Rules(), steps, n_step, frames)
    continue_memory(memory, games, np.random.default_rng(0), steps, frames == "dict")
    memory.save(tmp_path / "memory")
    loaded = pser.ReplayMemory.load(tmp_path / "memory")
    loaded.check_invariants()
    assert dump_memory(loaded) == dump_memory(memory)
    states = [(game.observation.copy(), game.rng.bit_generator.state) for game in games]
    results = []
    for which in (memory, loaded):
        for game, (observation, state) in zip(games, states, strict=True):
            game.observation, game.rng.bit_generator.state = observation, state
        results.append(continue_memory(which, games, np.random.default_rng(5), 30, frames == "dict"))
    assert results[0] == results[1]
    assert dump_memory(loaded) == dump_memory(memory)


@pytest.mark.parametrize("rules", KINDS, ids=NAMES)
def test_a_loaded_memory_keeps_its_prioritization(rules, tmp_path):
    memory, games = grown_memory(rules, 9, 1, True)
    continue_memory(memory, games, np.random.default_rng(0), 9, False)
    memory.save(tmp_path / "memory")
    loaded = pser.ReplayMemory.load(tmp_path / "memory")
    results = [which.sample(32, beta=0.4, copy=True) for which in (memory, loaded)]
    assert results[0].ids.tolist() == results[1].ids.tolist()
    assert results[0].weights.tobytes() == results[1].weights.tobytes()


def test_open_episodes_and_pending_steps_are_saved(tmp_path):
    memory, model = memory_pair(20, pser.Array((3, 2, 3), np.uint8), n_step=3, eps=0.0, eta=0.0, rho=0.5)
    d = MemoryDriver(memory, model, [FrameGame(stack=3)])
    for _ in range(5):
        d.step([""])
    memory.save(tmp_path / "memory")
    d.memory = pser.ReplayMemory.load(tmp_path / "memory")
    assert d.step(["terminated"]) == [3, 4, 5]  # two of them were pending when it was saved
    d.compare_everything()
    d.memory.update_priorities([5], [64.0])
    model.index.update([5], [64.0])
    d.compare_priorities()
    assert d.memory.priorities([2]).tolist() == [8.0]  # decay walks back into what was saved


def test_saving_the_same_memory_twice_gives_the_same_bytes():
    index = grown_index(Rules(), 20)
    assert saved_bytes(index) == saved_bytes(index)


def test_saving_changes_nothing():
    index = grown_index(Rules(), 20)
    other = grown_index(Rules(), 20)
    saved_bytes(index)
    assert dump_index(index) == dump_index(other)


def test_paths_may_be_strings_and_keep_their_name(tmp_path):
    index = grown_index(Rules(), 5)
    index.save(str(tmp_path / "a name without suffix"))
    assert [p.name for p in tmp_path.iterdir()] == ["a name without suffix"]
    assert len(pser.PriorityIndex.load(str(tmp_path / "a name without suffix"))) == len(index)


# ----------------------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small saved memory, with open episodes and pending steps, as bytes."""
    memory, games = grown_memory(Rules(), 12, 3, True, capacity=12)
    continue_memory(memory, games, np.random.default_rng(0), 12, False)
    path = tmp_path_factory.mktemp("saved") / "memory"
    memory.save(path)
    return path.read_bytes()


def positions(length, count):
    """Both ends thoroughly, the middle evenly."""
    edge = min(200, length // 4)
    middle = np.linspace(0, length - 1, count).astype(int).tolist()
    return sorted({*range(edge), *middle, *range(length - edge, length)})


def test_a_file_cut_anywhere_is_refused(saved, tmp_path):
    path = tmp_path / "cut"
    for length in positions(len(saved), 200):
        path.write_bytes(saved[:length])
        with pytest.raises(PserError):
            pser.ReplayMemory.load(path)


def test_a_flipped_byte_anywhere_is_refused(saved, tmp_path):
    path = tmp_path / "flipped"
    for position in positions(len(saved), 500):
        for flip in (0x01, 0xFF):
            damaged = bytearray(saved)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(PserError):
                pser.ReplayMemory.load(path)


def test_bytes_appended_or_exchanged_are_refused(saved, tmp_path):
    path = tmp_path / "damaged"
    half = len(saved) // 2
    for damaged in (
        saved + b"\0",
        saved + saved,
        saved[:half] + bytes(64) + saved[half + 64 :],
        saved[64:] + saved[:64],
        saved[: half - 8] + saved[half : half + 8] + saved[half - 8 : half] + saved[half + 8 :],
    ):
        if damaged == saved:
            continue
        path.write_bytes(damaged)
        with pytest.raises(PserError):
            pser.ReplayMemory.load(path)


def test_a_file_of_something_else_is_refused(tmp_path, saved):
    path = tmp_path / "other"
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    for content in (
        b"",
        b"hello",
        json.dumps({"capacity": 3}).encode(),
        (tmp_path / "other.npz").read_bytes(),
        pickle.dumps([1]),
    ):
        path.write_bytes(content)
        for kind in (pser.ReplayMemory, pser.PriorityIndex):
            with pytest.raises(PserError):
                kind.load(path)


def test_a_memory_cannot_be_loaded_as_an_index_nor_the_other_way_round(tmp_path, saved):
    (tmp_path / "memory").write_bytes(saved)
    with pytest.raises(PserError):
        pser.PriorityIndex.load(tmp_path / "memory")
    grown_index(Rules(), 5).save(tmp_path / "index")
    with pytest.raises(PserError):
        pser.ReplayMemory.load(tmp_path / "index")


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises((FileNotFoundError, PserError), match="nowhere"):
        pser.ReplayMemory.load(tmp_path / "nowhere")


def test_loading_never_uses_pickle(tmp_path, saved, monkeypatch):
    def forbidden(*_args, **_kwargs):
        raise AssertionError("pickle was used")

    import _pickle

    for module in (pickle, _pickle):
        for name in ("load", "loads", "Unpickler", "dump", "dumps", "Pickler"):
            monkeypatch.setattr(module, name, forbidden)
    (tmp_path / "memory").write_bytes(saved)
    loaded = pser.ReplayMemory.load(tmp_path / "memory")
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved


# ----------------------------------------------------------------------------------------- crashes

CRASH = """
import resource, signal, sys
import numpy as np, pser
path, limit = sys.argv[1], int(sys.argv[2])
memory = pser.ReplayMemory(capacity=2000, observation=pser.Array((16,), np.float32), seed=1)
for t in range(2000):
    memory.add(np.full(16, t, np.float32), t, 0.0, np.full(16, t + 1, np.float32), False, False)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    memory.save(path)
except OSError:
    sys.exit(3)
"""


@pytest.mark.parametrize("limit", [0, 1, 1000, 100_000])
def test_a_save_that_fails_in_the_middle_leaves_the_old_file(tmp_path, saved, limit):
    path = tmp_path / "memory"
    path.write_bytes(saved)
    done = subprocess.run([sys.executable, "-c", CRASH, str(path), str(limit)], check=False)
    assert done.returncode == 3  # the operating system refused the write, and the caller was told
    assert path.read_bytes() == saved
    pser.ReplayMemory.load(path).check_invariants()
    assert [p.name for p in tmp_path.iterdir()] == ["memory"]  # nothing half-written is left behind


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_save_interrupted_before_it_is_complete_leaves_the_old_file(tmp_path, saved, step, monkeypatch):
    path = tmp_path / "memory"
    path.write_bytes(saved)
    memory = pser.ReplayMemory.load(path)
    memory.end_episodes()
    reached = []

    def fails(*_args, **_kwargs):
        reached.append(step)
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, step, fails)
    with pytest.raises(OSError, match="the disk is gone"):
        memory.save(path)
    monkeypatch.undo()
    assert reached
    assert path.read_bytes() == saved
    assert [p.name for p in tmp_path.iterdir()] == ["memory"]


def test_saving_into_a_folder_that_does_not_exist_is_an_error(tmp_path):
    index = grown_index(Rules(), 5)
    with pytest.raises(OSError, match="missing"):
        index.save(tmp_path / "missing" / "index")
