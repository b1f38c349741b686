"""A memory on disk: the same bits as one in memory, open again after a restart, and whole after a crash."""

import copy
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pser
from fuzz.crafted import Parts
from pser.errors import DamagedFileError, PserError
from pser.memory import disk, recovery

from . import kill_disk
from .dumps import saved_bytes
from .games import FrameGame
from .test_changes import SPACES, Player
from .test_compressed_frames import ScreenGame

SHAPE = (2, 30)
ON_DISK = {name: space for name, space in SPACES.items() if name != "compressed"}


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch):
    """Hundreds of small flushes need not reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def player_on_disk(space, folder, n_step=1, capacity=29):
    """As Player, with its memory on disk."""
    player = Player(space, n_step, capacity=capacity)
    player.memory = pser.ReplayMemory(
        capacity,
        SPACES[space],
        num_envs=3,
        prioritization=player.memory.prioritization,
        n_step=n_step,
        seed=4,
        storage="disk",
        path=folder,
    )
    return player


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("space", ON_DISK)
def test_the_same_seeds_give_the_same_batches_as_in_memory(space, n_step, tmp_path):
    here, there = Player(space, n_step), player_on_disk(space, tmp_path / "memory", n_step)
    assert here.play(40) == there.play(40)
    assert saved_bytes(here.memory) == saved_bytes(there.memory)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("space", ON_DISK)
def test_a_memory_that_was_closed_continues_bit_for_bit(space, n_step, tmp_path):
    here, there = Player(space, n_step), player_on_disk(space, tmp_path / "memory", n_step)
    for steps in (0, 5, 1, 30):
        assert here.play(steps) == there.play(steps)
        there.memory.close()
        there.memory = pser.ReplayMemory.load(tmp_path / "memory")
        assert saved_bytes(here.memory) == saved_bytes(there.memory)


def test_it_is_saved_and_loaded_as_any_other(tmp_path):
    player = player_on_disk("dict", tmp_path / "memory")
    player.play(20)
    player.memory.save(tmp_path / "whole")
    player.memory.save_changes(tmp_path / "parts")
    for name in ("whole", "parts"):
        assert saved_bytes(pser.ReplayMemory.load(tmp_path / name)) == saved_bytes(player.memory)


# ------------------------------------------------------------------------------------------- crashes


def crash(folder, copy):
    """What a process leaves behind that is killed now: a mapped file shows all that was written to it."""
    shutil.copytree(folder, copy)
    return copy


def remembered(memory):
    """Every transition by its id, with its priority."""
    ids = np.arange(memory.index.oldest_id, memory.index.next_id)
    if not len(ids):
        return {}
    batch, found = memory[ids], {}
    for row, number in enumerate(ids.tolist()):
        seen = (batch.observation, batch.next_observation)
        parts = [v[row] for o in seen for v in (o.values() if isinstance(o, dict) else [o])]
        parts += [batch.action[row], batch.reward[row], batch.discount[row], batch.terminated[row]]
        found[number] = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    return found


@pytest.mark.parametrize("space", ON_DISK)
@settings(max_examples=25 if settings().max_examples < 1000 else 1000)
@given(data=st.data())
def test_after_a_crash_what_was_flushed_is_there_but_for_what_was_overwritten(space, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("crash")
    n_step = data.draw(st.sampled_from([1, 3]), "n_step")
    player = player_on_disk(space, folder / "0", n_step)
    for number in range(data.draw(st.integers(1, 3), "crashes")):
        player.play(data.draw(st.sampled_from([0, 1, 7, 20, 40]), "steps"))
        player.memory.flush()
        flushed, next_id = remembered(player.memory), player.memory.index.next_id
        flushed_priorities = player.memory.priorities(np.arange(next_id))
        player.play(data.draw(st.sampled_from([0, 1, 2, 3, 5, 12, 60]), "steps since"))
        added = player.memory.index.next_id - next_id
        copy = crash(folder / f"{number}", folder / f"{number + 1}")
        memory = pser.ReplayMemory.load(copy)
        memory.check_invariants()
        assert memory.index.next_id == next_id
        found = remembered(memory)
        assert found == {i: flushed[i] for i in found}
        assert memory.priorities(np.array(list(found), np.int64)).tolist() == [
            flushed_priorities[i] for i in found
        ]
        if space == "array":  # frames of short episodes take others with them
            assert len(found) == max(0, min(len(flushed), 29 - added))
        elif not added:
            assert found == flushed
        assert not (copy / "crashed.pser").exists()
        player.memory = memory
        new_games(player)
    player.play(10)
    player.memory.check_invariants()


def new_games(player):
    game = ScreenGame if "frames" not in player.space else FrameGame
    player.games = [game(SHAPE, 3, seed=player.rng.integers(1000)) for _ in range(3)]


@pytest.mark.parametrize("since", [1, 2, 3, 5, 8])
def test_after_a_crash_frames_whose_places_were_taken_are_gone(since, tmp_path):
    """Episodes of one step: the ring of frames turns before the rows do."""
    player = player_on_disk("frames", tmp_path / "0", capacity=60)
    player.games = [FrameGame(SHAPE, 3, "distinct", seed=e) for e in range(3)]

    def play(steps):
        for _ in range(steps):
            rows = [game.step("terminated") for game in player.games]
            now, then, terminated, truncated = (np.stack([row[c] for row in rows]) for c in range(4))
            player.memory.add(now, np.zeros(3, np.int64), np.zeros(3), then, terminated, truncated)

    play(60)
    player.memory.flush()
    flushed = remembered(player.memory)
    assert 0 < len(flushed) < 50
    play(since)
    found = remembered(pser.ReplayMemory.load(crash(tmp_path / "0", tmp_path / "1")))
    assert found == {i: flushed[i] for i in found}
    assert len(found) < len(flushed)
    assert found or since > 3


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("since", [1, 7, 30, 90, 400])
def test_after_a_crash_frames_whose_bytes_were_used_again_are_gone(since, n_step, tmp_path):
    """Bytes are scarcer than places: the oldest chunk is used again long before the ring has turned."""
    player = player_on_disk("few bytes", tmp_path / "0", n_step, capacity=2000)
    player.games = [FrameGame(SHAPE, 3, seed=e) for e in range(3)]
    player.play(400)
    player.memory.flush()
    flushed = remembered(player.memory)
    assert len(flushed) < 600
    player.play(since)
    memory = pser.ReplayMemory.load(crash(tmp_path / "0", tmp_path / "1"))
    found = remembered(memory)
    assert found == {i: flushed[i] for i in found}
    assert found or since >= 90
    player.games = [FrameGame(SHAPE, 3, seed=e) for e in (5, 6, 7)]
    for _ in range(40):  # what is added now takes nothing away from what is still there
        player.play(5, memory)
        memory.check_invariants()
        later = remembered(memory)
        assert {i: later[i] for i in later if i in found} == {i: found[i] for i in later if i in found}


@pytest.mark.parametrize("space", ON_DISK)
@pytest.mark.parametrize("where", ["write", "clear_rows", "recover", "begin_streams_anew", "flush"])
def test_a_crash_while_it_is_opened_after_a_crash_loses_no_more(space, where, tmp_path, monkeypatch):
    player = player_on_disk(space, tmp_path / "0")
    player.play(25)
    player.memory.flush()
    player.play(4)
    for name in ("1", "2"):
        crash(tmp_path / "0", tmp_path / name)
    expected = remembered(pser.ReplayMemory.load(tmp_path / "1"))

    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    owner = {"write": recovery.Overwritten, "flush": pser.ReplayMemory}.get(where, recovery)
    with monkeypatch.context() as patch:
        patch.setattr(owner, where, killed)
        with pytest.raises(Killed):
            pser.ReplayMemory.load(tmp_path / "2")
    assert remembered(pser.ReplayMemory.load(crash(tmp_path / "2", tmp_path / "3"))) == expected


def test_a_memory_killed_while_adding_opens_again_with_nothing_wrong(tmp_path):
    """A few of the kills of `make torture-disk`."""
    rows = kill_disk.torture(8, 1, tmp_path)
    assert sum(seen for *_, seen in rows) > 0


def test_after_a_crash_of_the_machine_it_is_refused_unless_it_was_closed(tmp_path, monkeypatch):
    player = player_on_disk("frames", tmp_path / "memory")
    player.play(5)
    player.memory.flush()
    left = crash(tmp_path / "memory", tmp_path / "left")
    player.memory.close()
    monkeypatch.setattr(disk, "_boot", lambda: "another")
    with pytest.raises(DamagedFileError, match="when the machine went down"):
        pser.ReplayMemory.load(left)
    assert len(pser.ReplayMemory.load(tmp_path / "memory"))
    monkeypatch.setattr(disk, "_boot", lambda: None)
    with pytest.raises(DamagedFileError, match="when the machine went down"):
        pser.ReplayMemory.load(left)


# ------------------------------------------------------------------------------------------- refusals


def make(folder, **settings):
    return pser.ReplayMemory(
        **{
            "capacity": 10,
            "observation": pser.Array((2,), np.float32),
            "storage": "disk",
            "path": folder,
            **settings,
        }
    )


def test_what_cannot_be_kept_on_disk_is_refused_in_one_line(tmp_path):
    for changes, match in [
        ({"storage": "tape"}, "storage must be"),
        ({"path": None}, "needs a path"),
        ({"storage": "memory"}, "path belongs to"),
        ({"observation": pser.Frames((84, 84), compress=True)}, "need capacity_bytes"),
        ({"path": 3}, "named by a path"),
    ]:
        with pytest.raises(PserError, match=match):
            make(tmp_path / "memory", **changes)
    assert not list(tmp_path.iterdir())
    with pytest.raises(PserError, match="only a memory with"):
        pser.ReplayMemory(10, pser.Array((2,), np.float32)).flush()
    with pytest.raises(PserError, match="only a memory with"):
        pser.ReplayMemory(10, pser.Array((2,), np.float32)).close()


def test_a_folder_that_holds_anything_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(PserError, match="new or empty folder"):
        make(tmp_path)
    with pytest.raises(PserError, match="holds no memory on disk"):
        pser.ReplayMemory.load(tmp_path)
    memory = make(tmp_path / "memory")
    memory.close()
    with pytest.raises(PserError, match="open it with"):
        make(tmp_path / "memory")


def test_a_disk_without_room_is_refused(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(PserError, match=r"needs .* GB in"):
        make(tmp_path / "memory")


def test_it_is_open_once(tmp_path):
    memory = make(tmp_path / "memory")
    with pytest.raises(PserError, match="open already"):
        pser.ReplayMemory.load(tmp_path / "memory")
    memory.close()
    pser.ReplayMemory.load(tmp_path / "memory").close()


def test_once_closed_it_cannot_be_used(tmp_path):
    memory = make(tmp_path / "memory")
    memory.close()
    memory.close()
    for use in (
        lambda: memory.sample(1),
        lambda: memory.add([0, 0], 0, 0.0, [0, 0], False, False),
        memory.flush,
    ):
        with pytest.raises(PserError, match="was closed: open it again"):
            use()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_is_not_copied_or_pickled(how, tmp_path):
    with pytest.raises(PserError, match="save it to a file and load that"):
        how(player_on_disk("array", tmp_path / "memory").memory)


def test_a_child_of_a_fork_is_refused(tmp_path):
    memory = make(tmp_path / "memory")
    child = os.fork()
    if child == 0:
        try:
            memory.add(np.zeros(2, np.float32), 0, 0.0, np.zeros(2, np.float32), False, False)
        except PserError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    memory.add(np.zeros(2, np.float32), 0, 0.0, np.zeros(2, np.float32), False, False)
    assert len(memory) == 1


# --------------------------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder of a memory whose process died."""
    folder = tmp_path_factory.mktemp("left")
    player = player_on_disk("few bytes", folder / "memory", 3)
    player.play(12)
    player.memory.flush()
    player.play(3)
    return crash(folder / "memory", folder / "left")


@pytest.mark.parametrize("name", ["memory.pser", "columns.bin", "open.json"])
def test_a_missing_cut_or_foreign_file_is_refused(left, name, tmp_path):
    for number, change in enumerate(["missing", "cut", "foreign"]):
        copy = crash(left, tmp_path / f"{number}")
        path = copy / name
        if change == "missing" and name != "open.json":
            path.unlink()
        elif change == "cut":
            path.write_bytes(path.read_bytes()[:-1] if name != "open.json" else b"{")
        elif change == "foreign":
            path.write_bytes(b"x" * path.stat().st_size)
        else:
            continue
        with pytest.raises((PserError, FileNotFoundError)):
            pser.ReplayMemory.load(copy)


def test_whatever_stands_in_the_mapped_file_is_refused_or_works(left, tmp_path):
    rng = np.random.default_rng(0)
    size, loaded = (left / "columns.bin").stat().st_size, 0
    for number in range(150):
        copy = crash(left, tmp_path / f"{number}")
        with open(copy / "columns.bin", "r+b") as file:
            for _ in range(3):
                file.seek(int(rng.integers(size // 8)) * 8)
                file.write(
                    int(rng.choice([-1, 0, 1, 7, 2**31, 2**62, -(2**63)])).to_bytes(8, "little", signed=True)
                )
        try:
            memory = pser.ReplayMemory.load(copy)
        except PserError as error:
            if "\n" in str(error):
                raise
        else:
            loaded += 1
            memory.check_invariants()
            if len(memory):
                memory.sample(8)
        shutil.rmtree(copy)
    assert loaded


def test_a_head_of_wrong_numbers_is_refused_or_works(left, tmp_path):
    data = (left / "memory.pser").read_bytes()
    for key, value in [("disk", "x"), ("disk", "0" * 32), ("disk", 3), ("disk", None)]:
        parts = Parts(data)
        parts.header[key] = value
        copy = crash(left, tmp_path / f"{value}")
        (copy / "memory.pser").write_bytes(parts.joined())
        with pytest.raises(PserError):
            pser.ReplayMemory.load(copy)
    parts = Parts(data)
    parts.header["settings"]["capacity"] = 2**30
    copy = crash(left, tmp_path / "capacity")
    (copy / "memory.pser").write_bytes(parts.joined())
    with pytest.raises(PserError):
        pser.ReplayMemory.load(copy)


def test_where_it_lives_is_told_by_a_path_of_any_kind(tmp_path):
    for path in (str(tmp_path / "a"), Path(tmp_path / "b")):
        make(path).close()
        assert len(pser.ReplayMemory.load(path)) == 0
