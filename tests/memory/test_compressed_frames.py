"""Compressed frames: fewer bytes, and nothing else is different from frames kept as they are."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from fuzz.crafted import Parts
from pser.errors import DamagedFileError, PserError
from strategies import memory_pair

from .games import ENDS, PADDINGS, FrameGame, MemoryDriver


class ScreenGame(FrameGame):
    """Frames of which little changes from one to the next, and now and then everything."""

    def __init__(self, shape, stack=4, padding="repeat", seed=0, dtype=np.uint8, changes=3, cut=0.02):
        self.changes, self.cut, self.screen = changes, cut, None
        super().__init__(shape, stack, padding, seed, dtype)

    def frame(self):
        """The last one with a few pixels of other values."""
        if self.screen is None or self.rng.random() < self.cut:
            self.screen = super().frame()
        at = self.rng.integers(0, self.screen.size, self.changes)
        self.screen = self.screen.copy()
        self.screen.reshape(-1)[at] = self.rng.integers(1, 256, self.changes)
        return self.screen


class ScrollGame(FrameGame):
    """A picture of few colours that moves on with every frame, and now and then another one."""

    def __init__(self, shape, stack=4, padding="repeat", seed=0, dtype=np.uint8, cut=0.02):
        self.cut, self.picture = cut, None
        super().__init__(shape, stack, padding, seed, dtype)

    def frame(self):
        """Stripes of different widths, each frame further by three pixels."""
        first = super().frame()
        if self.picture is None or self.rng.random() < self.cut:
            colours = self.rng.integers(0, 256, first.size)
            self.picture = np.repeat(colours, self.rng.integers(1, 30, first.size))[: first.size]
        self.picture = np.roll(self.picture, 3)
        return self.picture.astype(first.dtype).reshape(first.shape)


def play(memories, games, steps, rng, ends=ENDS, priorities=False):
    """The same steps to every memory."""
    for _ in range(steps):
        rows = [game.step(str(rng.choice(["", "", "", "", *ends]))) for game in games]
        now, then, terminated, truncated = (np.stack([row[c] for row in rows]) for c in range(4))
        count = len(games)
        given = {"td_error": rng.normal(size=count)} if priorities else {}
        rewards, actions = rng.normal(size=count), rng.integers(0, 9, count)
        ids = [m.add(now, actions, rewards, then, terminated, truncated, **given) for m in memories]
        assert all(each.tolist() == ids[0].tolist() for each in ids)


def assert_same_batches(a, b, batches=3):
    """Both memories draw the same and give the same, bit for bit."""
    assert len(a) == len(b)
    for _ in range(batches if len(a) else 0):
        for one, other in zip(a.sample(33), b.sample(33), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def pair(capacity, frames, **settings):
    """A memory of plain frames and one of compressed ones."""
    specs = (frames, replaced(frames, compress=True))
    return [pser.ReplayMemory(capacity, spec, seed=1, **settings) for spec in specs]


def replaced(frames, **changed):
    """The spec with other settings."""
    values = {name: getattr(frames, name) for name in ("shape", "stack", "dtype", "spare")}
    return pser.Frames(**values | changed)


def stored_bytes(memory, field=""):
    """Of the chunks ever touched."""
    arrays = memory._storage.arrays
    return int(arrays[f"compressed/{field}/used_chunks"][0]) * arrays[f"compressed/{field}/records"].shape[1]


SHAPES = [(), (1,), (7,), (15,), (16,), (17,), (4, 8), (5, 13), (12, 12), (33, 31), (33, 32), (95, 89)]


@given(
    shape=st.sampled_from(SHAPES),
    stack=st.integers(1, 4),
    envs=st.integers(1, 3),
    n_step=st.sampled_from([1, 1, 2, 3]),
    capacity=st.integers(3, 40),
    changes=st.sampled_from([0, 1, 3, 40, "scroll"]),
    padding=st.sampled_from(PADDINGS),
    seed=st.integers(0, 2**20),
)
def test_the_same_seed_gives_the_same_batches_as_plain_frames(
    shape, stack, envs, n_step, capacity, changes, padding, seed
):
    rng = np.random.default_rng(seed)
    memories = pair(capacity, pser.Frames(shape, stack=stack), num_envs=envs, n_step=n_step)
    if changes == "scroll":
        games = [ScrollGame(shape, stack, padding, seed + e) for e in range(envs)]
    else:
        games = [ScreenGame(shape, stack, padding, seed + e, changes=changes) for e in range(envs)]
    for _ in range(4):
        play(memories, games, 15, rng, priorities=True)
        assert_same_batches(*memories)
        ids = memories[0].sample(5).ids.copy() if len(memories[0]) else []
        memories[1].sample(5)
        for memory in memories:
            memory.update_priorities(ids, np.linspace(0.0, 2.0, len(ids)))
        stream = io.BytesIO()
        memories[1].save(stream)
        stream.seek(0)
        memories[1] = pser.ReplayMemory.load(stream)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
def test_long_play_gives_what_plain_frames_give(dtype):
    rng = np.random.default_rng(0)
    memories = pair(700, pser.Frames((21, 20), dtype=dtype, spare=1.0), num_envs=2)
    games = [ScreenGame((21, 20), 4, "zeros", e, dtype) for e in range(2)]
    for _ in range(6):
        play(memories, games, 250, rng, ends=["", "", "", "", *ENDS])
        assert_same_batches(*memories)
    ids = np.arange(memories[0].index.oldest_id, memories[0].index.next_id)
    assert len(ids) == 700
    for one, other in zip(*(memory[ids] for memory in memories), strict=True):
        assert np.array_equal(one, other)


class FlickerGame(FrameGame):
    """The same part of the screen is new at each step: every delta is as large, so no new key is ever worth it."""

    def frame(self):
        """A still picture but for its upper 40%."""
        if not hasattr(self, "still"):
            self.still = super().frame()
        screen, rows = self.still.copy(), 2 * len(self.still) // 5
        screen[:rows] = self.rng.integers(0, 256, screen[:rows].shape)
        return screen


@pytest.mark.parametrize("limit", [None, 200_000])
def test_a_key_frame_lives_as_long_as_any_frame_that_refers_to_it(limit):
    """Keys are as old as they may be, far older than the margin of the ring, and their chunks are wanted again."""
    frames = pser.Frames((20, 32), stack=1, compress=True, capacity_bytes=limit)
    plain = pser.ReplayMemory(500, pser.Frames((20, 32), stack=1), seed=1)
    small = pser.ReplayMemory(500, frames, seed=1)
    game, rng = FlickerGame((20, 32), stack=1), np.random.default_rng(0)
    for _ in range(30):
        play([plain, small], [game], 67, rng, ends=[""])
        ids = np.arange(small.index.oldest_id, small.index.next_id)
        for one, other in zip(plain[ids][:4], small[ids][:4], strict=True):
            assert np.array_equal(one, other)
    assert len(small) == 500 if limit is None else 100 < len(small) < 500


def test_frames_that_change_little_take_a_fraction_of_their_size():
    memory = pser.ReplayMemory(2_000, pser.Frames((84, 84), compress=True), seed=0)
    play([memory], [ScreenGame((84, 84), changes=4, cut=0.0)], 5_000, np.random.default_rng(0), ends=[""])
    assert len(memory) == 2_000
    assert stored_bytes(memory) < 2_000 * 84 * 84 / 8


def test_pictures_that_scroll_take_a_fraction_of_their_size():
    """Everything changes from each frame to the next; what is alike lies side by side in one frame."""
    memory = pser.ReplayMemory(2_000, pser.Frames((84, 84), compress=True), seed=0)
    play([memory], [ScrollGame((84, 84))], 3_000, np.random.default_rng(0), ends=[""])
    assert len(memory) == 2_000
    assert stored_bytes(memory) < 2_000 * 84 * 84 / 5


def test_a_key_frame_that_has_become_a_bad_one_is_replaced():
    """After a black screen each frame differs from it in nearly half of its pixels."""
    memory = pser.ReplayMemory(2_000, pser.Frames((84, 84), stack=1, compress=True), seed=0)
    screen = np.zeros((1, 84, 84), np.uint8)
    for t in range(1_000):
        following = screen.copy()
        if t == 0:
            following[:, :40] = 7
        following[:, 41, t % 84] = t % 256
        memory.add(screen, 0, 0.0, following, False, False)
        screen = following
    assert stored_bytes(memory) < 400 * 1_000


def test_frames_that_change_throughout_take_hardly_more_than_their_size():
    memory = pser.ReplayMemory(2_000, pser.Frames((20, 20), compress=True), seed=0)
    play([memory], [FrameGame((20, 20))], 5_000, np.random.default_rng(0), ends=[""])
    assert len(memory) == 2_000
    assert stored_bytes(memory) < 2_500 * 400


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("changes", [3, 60])
def test_with_a_limit_in_bytes_the_oldest_leave_first_and_the_rest_is_right(n_step, changes):
    limit = 300_000
    frames = pser.Frames((24, 24), compress=True, capacity_bytes=limit)
    memory, model = memory_pair(20_000, frames, num_envs=2, n_step=n_step)
    d = MemoryDriver(memory, model, [ScreenGame((24, 24), seed=e, changes=changes) for e in range(2)])
    rng = np.random.default_rng(0)
    for t in range(1_600):
        d.step([str(rng.choice(["", "", "", "", "", "", "", *ENDS])) for _ in range(2)])
        if t % 400 == 399:
            check_all(d)
    assert stored_bytes(memory) <= limit
    if changes == 60:
        assert 150 < len(memory) < 3_000


def check_all(driver):
    """Every retained transition equals the model's, bit for bit."""
    ids = np.asarray(driver.model.index.ids)
    batch = driver.memory[ids]
    for row, transition in enumerate(ids.tolist()):
        wanted = driver.model.transitions[transition]
        assert np.array_equal(batch.observation[row], wanted.observation)
        assert np.array_equal(batch.next_observation[row], wanted.next_observation)


@pytest.mark.parametrize("n_step", [2, 5])
def test_with_a_limit_in_bytes_an_idle_stream_keeps_its_unfinished_transitions(n_step):
    frames = pser.Frames((24, 24), stack=3, compress=True, capacity_bytes=500_000)
    memory, model = memory_pair(50_000, frames, num_envs=3, n_step=n_step)
    games = [FrameGame((24, 24), 3, "distinct", e) for e in range(3)]
    d = MemoryDriver(memory, model, games)
    for _ in range(n_step - 1):
        d.step(["", "", ""])
    for t in range(3_000):
        d.step(["terminated" if t % 50 == 49 else ""], stream=[1])
    assert len(memory) < 1_000
    d.step(["", "", ""])
    d.end_episodes()
    check_all(d)


def test_a_limit_in_bytes_that_cannot_hold_the_newest_frames_is_refused():
    frames = pser.Frames((84, 84), compress=True, capacity_bytes=10_000)
    with pytest.raises(PserError, match="capacity_bytes must be at least"):
        pser.ReplayMemory(100, frames)


@pytest.mark.parametrize(
    "settings",
    [{"compress": 1}, {"capacity_bytes": 10**6}, {"compress": True, "capacity_bytes": 0.5}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(PserError, match="compress"):
        pser.Frames((84, 84), **settings)


PROGRAM = """
import hashlib, io, sys
import numpy as np, pser
from memory.test_compressed_frames import ScreenGame, ScrollGame, play
digest = hashlib.sha256()
for shape in [(5, 13), (84, 84)]:
    memory = pser.ReplayMemory(300, pser.Frames(shape, compress=True), num_envs=2, seed=0)
    play([memory], [ScreenGame(shape, changes=20), ScrollGame(shape)], 400, np.random.default_rng(0))
    digest.update(memory.sample(64).next_observation.tobytes())
    stream = io.BytesIO()
    memory.save(stream)
    digest.update(stream.getvalue())
print(digest.hexdigest(), pser._kernel.has_avx2())
"""


@pytest.mark.skipif(not pser._kernel.has_avx2(), reason="this processor has no AVX2 to compare with")
def test_portable_and_avx2_builds_store_and_give_the_same_bytes():
    tests = os.path.dirname(os.path.dirname(__file__))
    told = []
    for more in ({}, {"PSER_PORTABLE": "1"}):
        paths = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": paths, **more},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout.split())
    assert [avx2 for _, avx2 in told] == ["True", "False"]
    assert told[0][0] == told[1][0]


@pytest.fixture(scope="module")
def compressed_file():
    """Two streams, unfinished transitions, chunks that were used again."""
    frames = pser.Frames((9, 9), compress=True)
    memory = pser.ReplayMemory(200, frames, num_envs=2, n_step=3, seed=0)
    play([memory], [ScreenGame((9, 9), changes=1), ScrollGame((9, 9))], 400, np.random.default_rng(0))
    stream = io.BytesIO()
    memory.save(stream)
    return stream.getvalue()


WRONG_ARRAYS = {
    "a record beyond the chunks": ("at", 2**40, 0),
    "a record before them": ("at", -1, 3),
    "a key frame beyond the chunks": ("keys", 2**40, 0),
    "a key frame below −1": ("keys", -2, 5),
    "a key frame of the future": ("keys", 2**50, 1),
    "a negative number of deltas": ("keys", -1, 2),
    "more deltas than a key may have": ("keys", 2**60, 2),
    "an excess beyond all": ("keys", 2**62, 3),
    "a usual size below nothing": ("keys", -1, 4),
    "more chunks in use than there are": ("used_chunks", 10**6, 0),
    "a negative number of chunks": ("used_chunks", -1, 0),
    "the end of a chunk beyond it": ("filled", 10**6, 0),
    "a negative end of a chunk": ("filled", -1, 0),
    "a chunk of the future": ("last_frame", 2**50, 0),
    "a chunk below −1": ("last_frame", -2, 0),
    "a chunk that was never written": ("last_frame", 5, -1),
    "two chunks with one newest frame": ("last_frame", None, 0),
}


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_what_no_history_could_have_left_is_refused(case, compressed_file):
    name, number, at = WRONG_ARRAYS[case]
    parts = Parts(compressed_file)
    array = np.frombuffer(parts.array(f"compressed//{name}"), np.int64)
    array[at] = sorted(array)[-2 if array[at] == max(array) else -1] if number is None else number
    with pytest.raises(DamagedFileError):
        pser.ReplayMemory.load(io.BytesIO(parts.joined()))


def test_records_of_any_bytes_are_read_without_harm(compressed_file):
    """Pixels are whatever a file says; nothing outside the chunks is read, nothing outside the batch is written."""
    rng = np.random.default_rng(0)
    for fill in (0, 255, None, "runs"):
        parts = Parts(compressed_file)
        chunks = np.frombuffer(parts.array("compressed//records"), np.uint8)
        keys = rng.integers(-1, chunks.size, chunks.size // 8)
        chunks[:] = np.resize(keys.view(np.uint8), chunks.size) if isinstance(fill, str | None) else fill
        if fill == "runs":
            for at in np.frombuffer(parts.array("compressed//at"), np.int64):
                chunks[at : at + 8] = np.int64([-2]).view(np.uint8)[: chunks.size - at]
        memory = pser.ReplayMemory.load(io.BytesIO(parts.joined()))
        memory.sample(512)
        play([memory], [ScreenGame((9, 9), seed=e) for e in range(2)], 50, rng)
        memory.sample(512)
