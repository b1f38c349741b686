"""Saving what is new since an earlier save: the same bits as a whole save, whatever is added meanwhile."""

import copy
import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pser
from fuzz.crafted import Parts
from model import Rules
from pser.errors import PserError
from pser.files import archive
from pser.memory import cells, changes
from pser.memory.changes import Saving
from pser.memory.parts import KIND
from strategies import as_prioritization

from .dumps import saved_bytes
from .games import FrameGame
from .test_compressed_frames import ScreenGame
from .test_save import continue_memory

SHAPE = (2, 30)
SPACES = {
    "array": pser.Array((3, *SHAPE), np.uint8),
    "frames": pser.Frames(SHAPE, stack=3),
    "compressed": pser.Frames(SHAPE, stack=3, compress=True),
    "few bytes": pser.Frames(SHAPE, stack=3, compress=True, capacity_bytes=50_000),
    "dict": {"screen": pser.Frames(SHAPE, stack=3), "n": pser.Array((), np.int64)},
}
RULES = [Rules(), Rules(retain="decayed"), Rules(kind="rank", alpha=0.7)]


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch):
    """Hundreds of small saves need not reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def few_cells_at_a_time(monkeypatch):
    """As in a large memory: single cells are written, and a share of the others."""
    monkeypatch.setattr(cells, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(cells, "SHARES", 3)
    monkeypatch.setattr(cells, "MOST_CHANGED", 10.0)
    monkeypatch.setattr(cells, "READ_BYTES", 500)


class Player:
    """A memory, the games that fill it, and what they do by a generator of its own."""

    def __init__(self, space, n_step=1, rules=RULES[0], capacity=29):
        self.space = space
        self.memory = pser.ReplayMemory(
            capacity,
            SPACES[space],
            num_envs=3,
            prioritization=as_prioritization(rules),
            n_step=n_step,
            seed=4,
        )
        game = ScreenGame if "frames" not in space else FrameGame
        self.games = [game(SHAPE, 3, seed=e) for e in range(3)]
        self.rng = np.random.default_rng(0)

    def play(self, steps, memory=None):
        """So many steps, samples and updates, into another memory if one is given."""
        memory = self.memory if memory is None else memory
        return continue_memory(memory, self.games, self.rng, steps, self.space == "dict")

    def state(self):
        """Where the games are."""
        return copy.deepcopy((self.games, self.rng))

    def set_state(self, state):
        """Play on from there."""
        self.games, self.rng = copy.deepcopy(state)


def living(memory):
    """The bytes of a whole save, without chunks of compressed frames that nothing refers to."""
    parts = Parts(saved_bytes(memory))
    for name, _ in parts.header["arrays"]:
        if name.endswith("/records"):
            newest = np.frombuffer(parts.array(name.replace("records", "last_frame")), np.int64)
            chunks = np.frombuffer(parts.array(name), np.uint8)
            chunks = chunks.reshape(-1, memory._storage.layout[name].shape[1])
            chunks[newest[: len(chunks)] < 0] = 0
    return parts.joined()


def files_of(path, kind=None):
    """The head and the files that it names; only those of a kind, if one is given."""
    files = sorted(path.parent.glob(f"{path.name}*"))
    return [file for file in files if kind is None or archive.kind_of(file) == kind]


@pytest.mark.parametrize("space", SPACES)
@settings(max_examples=25 if settings().max_examples < 1000 else 1000)
@given(data=st.data())
def test_a_save_of_changes_holds_all_that_a_whole_one_does(space, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("saves")
    player = Player(space, data.draw(st.sampled_from([1, 3]), "n_step"), data.draw(st.sampled_from(RULES)))
    saves = [None]
    for number in range(data.draw(st.integers(1, 5), "saves")):
        player.play(data.draw(st.sampled_from([0, 1, 2, 3, 7, 12, 40]), "steps"))
        path = folder / (f"save-{number}" if data.draw(st.booleans(), "another name") else "save")
        since = saves[-data.draw(st.integers(1, min(4, len(saves))), "since")]
        saves.append(player.memory.save_changes(path, since=since).wait())
        loaded = pser.ReplayMemory.load(path)
        assert living(loaded) == living(player.memory)
        if data.draw(st.booleans(), "go on with the loaded one"):
            player.memory = loaded


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("space", SPACES)
def test_a_memory_loaded_from_its_parts_continues_bit_for_bit(space, n_step, tmp_path):
    player = Player(space, n_step)
    for steps in (5, 4, 30, 2):
        player.play(steps)
        player.memory.save_changes(tmp_path / "save")
    loaded = pser.ReplayMemory.load(tmp_path / "save")
    loaded.check_invariants()
    before = player.state()
    expected = player.play(30)
    player.set_state(before)
    assert player.play(30, loaded) == expected
    assert living(loaded) == living(player.memory)


def test_only_what_is_new_is_written_and_the_rest_is_linked(tmp_path):
    player = Player("array", capacity=1000)
    player.play(200)
    player.memory.save_changes(tmp_path / "one")
    player.play(10)
    player.memory.save_changes(tmp_path / "two")
    for kind, (before, after) in {KIND: (1, 2), cells.KIND: (3, 4)}.items():
        first, second = files_of(tmp_path / "one", kind), files_of(tmp_path / "two", kind)
        assert (len(first), len(second)) == (before, after)
        shared = [path for path in second if any(path.samefile(other) for other in first)]
        assert len(shared) == after - 1
        (new,) = (path for path in second if path not in shared)
        if kind == KIND:
            assert new.stat().st_size < 0.1 * shared[0].stat().st_size
    for path in first:
        path.unlink()
    assert living(pser.ReplayMemory.load(tmp_path / "two")) == living(player.memory)


def test_where_files_cannot_be_linked_they_are_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(changes.os, "link", refuse)
    player = Player("frames")
    for name in ("one", "two"):
        player.play(4)
        player.memory.save_changes(tmp_path / name)
    assert living(pser.ReplayMemory.load(tmp_path / "two")) == living(player.memory)


def test_a_part_goes_once_nothing_of_it_is_in_memory(tmp_path):
    player = Player("frames", capacity=30)
    for _ in range(20):
        player.play(3)
        player.memory.save_changes(tmp_path / "save")
        assert living(pser.ReplayMemory.load(tmp_path / "save")) == living(player.memory)
    assert len(files_of(tmp_path / "save", KIND)) < 12
    assert len(files_of(tmp_path / "save", cells.KIND)) <= 3


def test_after_many_saves_all_is_written_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "KEPT_PARTS", 4)
    player = Player("frames", capacity=1000)
    counts = []
    for _ in range(10):
        player.play(2)
        player.memory.save_changes(tmp_path / "save")
        counts.append(len(files_of(tmp_path / "save", KIND)))
        assert living(pser.ReplayMemory.load(tmp_path / "save")) == living(player.memory)
    assert counts == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]


def test_a_save_of_another_memory_is_no_start(tmp_path):
    one, other = Player("array"), Player("array")
    one.play(5)
    saved = one.memory.save_changes(tmp_path / "one").wait()
    other.rng = np.random.default_rng(1)
    other.play(7)
    other.memory.save_changes(tmp_path / "other", since=saved)
    assert living(pser.ReplayMemory.load(tmp_path / "other")) == living(other.memory)


def test_if_the_earlier_files_are_gone_all_is_written(tmp_path):
    player = Player("compressed")
    player.play(5)
    player.memory.save_changes(tmp_path / "one")
    for path in files_of(tmp_path / "one"):
        path.unlink()
    player.play(5)
    player.memory.save_changes(tmp_path / "two")
    assert living(pser.ReplayMemory.load(tmp_path / "two")) == living(player.memory)


def test_a_save_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    player = Player("frames")
    player.play(5)
    player.memory.save_changes(tmp_path / "save")
    before = living(player.memory)
    player.play(5)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Saving, "_write_part", full_disk)
        with pytest.raises(OSError, match="No space"):
            player.memory.save_changes(tmp_path / "save")
        under_way = player.memory.save_changes(tmp_path / "save", background=True)
        with pytest.raises(OSError, match="No space"):
            under_way.wait()
    assert living(pser.ReplayMemory.load(tmp_path / "save")) == before
    player.play(5)  # nobody waits for a save that failed
    player.memory.save_changes(tmp_path / "save")
    assert living(pser.ReplayMemory.load(tmp_path / "save")) == living(player.memory)


# ------------------------------------------------------------------------------- while it is used on


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("pieces", [1, 7, 32])
def test_what_is_added_while_a_save_is_written_does_not_touch_it(
    space, n_step, pieces, tmp_path, monkeypatch
):
    """The writer stops before every part and before the head until somebody has added, or waits for it to go on."""
    player = Player(space, n_step, capacity=200)
    player.play(150)
    total = len(saved_bytes(player.memory))
    monkeypatch.setattr(changes, "COPIED_BYTES", max(1, total // pieces))
    write_part, turn = Saving._write_part, threading.Semaphore(0)

    def slow(*arguments):
        turn.acquire(timeout=10)
        return write_part(*arguments)

    monkeypatch.setattr(Saving, "_write_part", slow)
    for _ in range(2):
        expected = living(player.memory)
        saving = player.memory.save_changes(tmp_path / "save", background=True)
        adding = threading.Thread(target=player.play, args=(150,))
        adding.start()
        while adding.is_alive():
            adding.join(0.002)
            turn.release()
        turn.release(100)
        saving.wait()
        turn = threading.Semaphore(0)
        assert living(pser.ReplayMemory.load(tmp_path / "save")) == expected


CHANGES = {
    "alpha": lambda memory: memory.index.set_alpha(0.3),
    "priorities": lambda memory: memory.index.set_priorities(np.arange(60, 90), np.linspace(0.1, 3, 30)),
    "updates": lambda memory: memory.update_priorities(np.arange(60, 90), np.linspace(0.1, 3, 30)),
    "clear": lambda memory: memory.clear(),
}


class Between:
    """The kernel of an index, with somebody at work before one of the reads of a snapshot."""

    def __init__(self, kernel, before, work):
        self._kernel, self._before, self._work = kernel, before, work
        self.reads = 0

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def _read(self, name, out):
        if self.reads == self._before:
            self._work()
        self.reads += 1
        return getattr(self._kernel, name)(out)

    def read_blocks(self, out):
        """As the kernel does."""
        return self._read("read_blocks", out)

    def read_cells(self, out):
        """As the kernel does."""
        return self._read("read_cells", out)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "rules",
    [*RULES, Rules(kind="uniform"), Rules(decay="add")],
    ids=["max", "decayed", "rank", "uniform", "add"],
)
def test_priorities_are_saved_as_they_were_when_the_save_began(change, rules, tmp_path):
    """Of the blocks that are written whole, and of single cells: before any was read, and later."""
    if change == "alpha" and rules.kind != "pser":
        pytest.skip("there is no such change")
    for before in range(4):
        player = Player("array", rules=rules, capacity=100)
        player.play(40)
        player.memory.save_changes(tmp_path / "save")
        player.play(2)
        expected = living(player.memory)
        saving = player.memory.begin_save(tmp_path / "save", player.memory.saved)
        kernel = Between(saving._cells._kernel, before, lambda memory=player.memory: CHANGES[change](memory))
        saving._cells._kernel = kernel
        saving.write()
        assert kernel.reads > before
        assert living(pser.ReplayMemory.load(tmp_path / "save")) == expected


def test_of_a_large_memory_few_priorities_are_written(tmp_path, monkeypatch):
    monkeypatch.undo()
    player = Player("array", capacity=30_000)
    nothing = np.zeros((3, 3, *SHAPE), np.uint8)
    no = np.zeros(3, bool)
    for _ in range(10_000):
        player.memory.add(nothing, np.zeros(3, int), np.zeros(3), nothing, no, no)
    whole = player.memory.save_changes(tmp_path / "save").wait()
    whole_bytes = sum(path.stat().st_size for path in files_of(tmp_path / "save", cells.KIND))
    linked = len(whole.cells)
    assert linked > 4
    for _ in range(3 * linked):
        player.play(2)
        saved = player.memory.save_changes(tmp_path / "save").wait()
        new = saved.cells[-1].beside(saved.path).stat().st_size
        assert new < 0.1 * whole_bytes + whole_bytes / linked
        assert len(saved.cells) <= linked + 1
    assert living(pser.ReplayMemory.load(tmp_path / "save")) == living(player.memory)


def test_a_head_with_all_priorities_in_it_is_loaded_and_built_on(tmp_path):
    """As they were written before priorities had files of their own."""
    player = Player("frames", rules=RULES[1], capacity=100)
    player.play(40)
    saved = player.memory.save_changes(tmp_path / "save").wait()
    with archive.reading(tmp_path / "save", "ReplayMemory") as file:
        content = {name: value for name, value in file.content.items() if name not in ("arrays", "cells")}
        head = {name: np.empty(size, np.uint8) for name, size in file.arrays}
        file.fill(head)
    archive.write(tmp_path / "save", content.pop("kind"), content, player.memory.index.state_arrays() | head)
    for each in saved.cells:
        each.beside(saved.path).unlink()
    loaded = pser.ReplayMemory.load(tmp_path / "save")
    assert living(loaded) == living(player.memory)
    for _ in range(2):
        player.play(3, loaded)
        loaded.save_changes(tmp_path / "save")
        assert living(pser.ReplayMemory.load(tmp_path / "save")) == living(loaded)


def test_an_add_waits_for_the_rows_it_would_overwrite(tmp_path, monkeypatch):
    player = Player("array", capacity=30)
    player.play(10)
    go, write_part = threading.Event(), Saving._write_part

    def blocked(*arguments):
        go.wait(10)
        return write_part(*arguments)

    monkeypatch.setattr(Saving, "_write_part", blocked)
    monkeypatch.setattr(changes, "COPIED_BYTES", 1)
    expected = living(player.memory)
    saving = player.memory.save_changes(tmp_path / "save", background=True)
    adding = threading.Thread(target=player.play, args=(20,))
    adding.start()
    adding.join(0.2)
    assert adding.is_alive()
    go.set()
    adding.join()
    saving.wait()
    assert living(pser.ReplayMemory.load(tmp_path / "save")) == expected


LATE = {
    "add": lambda memory, rows: memory.add(*rows, stream=np.zeros(len(rows[1]), np.int64)),
    "add what is converted": lambda memory, rows: memory.add(*rows, stream=[0] * len(rows[1])),
    "add what ends an episode": lambda memory, rows: memory.add(
        *rows[:-1], rows[1] == 19, stream=np.zeros(len(rows[1]), np.int64)
    ),
    "end_episodes": lambda memory, _: memory.end_episodes(),
}


@pytest.mark.parametrize("late", LATE)
def test_an_add_that_waited_while_a_save_began_overwrites_nothing_of_it(late, tmp_path, monkeypatch):
    """The add came first, but found the lock taken."""
    monkeypatch.setattr(changes, "COPIED_BYTES", 1)
    memory = pser.ReplayMemory(20, pser.Array((), np.int64), num_envs=2, n_step=3, seed=0)

    def rows(start):
        numbers = np.arange(start, start + 20)
        no = np.zeros(20, bool)
        return numbers, numbers, np.zeros(20), numbers + 1, no, no

    memory.add(*rows(0), stream=np.zeros(20, np.int64))
    memory.add(*rows(0), stream=np.ones(20, np.int64))
    expected = living(memory)
    under_way = threading.Event()

    def come_late():
        under_way.set()
        LATE[late](memory, rows(20))

    adding = threading.Thread(target=come_late)
    with memory.index.locked():
        adding.start()
        under_way.wait()
        adding.join(0.1)
        saving = memory.begin_save(tmp_path / "save", None)
    adding.join(0.2)
    saving.write()
    adding.join(10)
    assert not adding.is_alive()
    assert living(pser.ReplayMemory.load(tmp_path / "save")) == expected
    assert living(memory) != expected


def test_saves_that_begin_at_once_follow_each_other(tmp_path):
    player = Player("array")
    player.play(20)
    expected = living(player.memory)
    started = threading.Barrier(4)

    def save(number):
        started.wait()
        for _ in range(20):
            player.memory.save_changes(tmp_path / f"save-{number}")

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    for number in range(4):
        assert living(pser.ReplayMemory.load(tmp_path / f"save-{number}")) == expected


def test_whoever_waits_under_the_lock_is_let_go_when_a_save_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "COPIED_BYTES", 1)
    player = Player("array", capacity=30)
    player.play(10)
    saving = player.memory.begin_save(tmp_path / "save", None)

    def add_under_the_lock():
        with player.memory.index.locked():
            player.play(20)

    adding = threading.Thread(target=add_under_the_lock, daemon=True)
    adding.start()
    adding.join(0.2)
    assert adding.is_alive()
    failing = threading.Thread(target=saving.abandon, daemon=True)
    failing.start()
    for thread in (adding, failing):
        thread.join(10)
        assert not thread.is_alive()


# --------------------------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of a small save in parts, as bytes by name."""
    folder = tmp_path_factory.mktemp("saved")
    player = Player("compressed", 3, capacity=12)
    for steps in (3, 2, 8):
        player.play(steps)
        player.memory.save_changes(folder / "save")
    return {path.name: path.read_bytes() for path in files_of(folder / "save")}


def put(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_a_flipped_byte_or_a_cut_anywhere_is_refused(saved, tmp_path):
    for name, content in saved.items():
        put(tmp_path, saved)
        for position in np.linspace(0, len(content) - 1, 150).astype(int).tolist():
            damaged = bytearray(content)
            damaged[position] ^= 0x21
            for bad in (damaged, content[:position]):
                (tmp_path / name).write_bytes(bad)
                with pytest.raises(PserError):
                    pser.ReplayMemory.load(tmp_path / "save")


def test_a_missing_part_is_refused(saved, tmp_path):
    for name in saved:
        put(tmp_path, saved)
        (tmp_path / name).unlink()
        with pytest.raises((PserError, FileNotFoundError), match="save"):
            pser.ReplayMemory.load(tmp_path / "save")


def test_a_part_of_the_same_span_of_another_save_is_refused(tmp_path):
    for number, name in enumerate(("one", "other")):
        player = Player("array", capacity=1000)
        player.rng = np.random.default_rng(number)
        player.play(5)
        player.memory.save_changes(tmp_path / name)
    (mine,), (theirs,) = (files_of(tmp_path / name, KIND) for name in ("one", "other"))
    assert mine.stat().st_size == theirs.stat().st_size
    mine.write_bytes(theirs.read_bytes())
    with pytest.raises(PserError, match="belongs to another save"):
        pser.ReplayMemory.load(tmp_path / "one")


def test_a_whole_part_of_another_save_is_refused(saved, tmp_path):
    put(tmp_path, saved)
    other = Player("compressed", 3, capacity=12)
    other.rng = np.random.default_rng(1)
    for steps in (3, 2, 8):
        other.play(steps)
        other.memory.save_changes(tmp_path / "other")
    parts = [name for name in saved if name != "save"]
    for mine, theirs in zip(parts, files_of(tmp_path / "other")[1:], strict=False):
        put(tmp_path, saved)
        (tmp_path / mine).write_bytes(theirs.read_bytes())
        with pytest.raises(PserError):
            pser.ReplayMemory.load(tmp_path / "save")


def test_a_save_in_parts_is_not_loaded_from_a_stream(saved, tmp_path):
    put(tmp_path, saved)
    with open(tmp_path / "save", "rb") as stream, pytest.raises(PserError, match="from its path"):
        pser.ReplayMemory.load(stream)
