"""Chunks: what arrives at a shard is what was played, bit for bit, with each frame sent once."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.cluster.chunk import Tape, observations_of
from pser.cluster.packing import Bits, Request, opened, pack, unpack, updates_of
from pser.cluster.shard import Shard
from pser.env.game import Step
from pser.learner.presets import preset_settings

STACK = 3


class Toy:
    """Environments that show stacks of frames (or single values) and end at random."""

    def __init__(self, spec, envs, seed, ends=0.2):
        self.spec, self.envs, self.ends = spec, envs, ends
        self.rng = np.random.default_rng(seed)
        self.observation = np.stack([self.first() for _ in range(envs)])

    def frame(self):
        if self.spec.dtype.kind == "f":
            return self.rng.choice(np.array([0.0, -0.0, 1.5, np.nan], self.spec.dtype), self.spec.shape)
        return self.rng.integers(0, 3, self.spec.shape).astype(self.spec.dtype)

    def first(self):
        if isinstance(self.spec, pser.Array):
            return self.frame()
        return np.stack([self.frame()] * STACK)

    def step(self):
        following = []
        for shown in self.observation:
            if isinstance(self.spec, pser.Array):
                following.append(self.frame())
            else:
                following.append(np.concatenate([shown[1:], self.frame()[None]]))
        following = np.stack(following)
        ended = self.rng.random(self.envs) < self.ends
        lives = ended & (self.rng.random(self.envs) < 0.3)  # the learning episode ends, the frames go on
        cut = ended & ~lives & (self.rng.random(self.envs) < 0.5)
        now = following.copy()
        for env in np.flatnonzero(ended & ~lives):
            now[env] = self.first()
        none = np.zeros(self.envs)
        return Step(
            self.rng.normal(size=self.envs),
            following,
            ended & ~cut,
            cut,
            now,
            ended,
            none,
            none.astype(np.int64),
        )


def played(game, steps):
    """A tape of so many steps."""
    tape = Tape(game.spec, steps, game.envs)
    for t in range(steps):
        step = game.step()
        tape.record(t, game.observation, game.rng.integers(0, 4, game.envs), step.reward, step)
        game.observation = step.observation
    return tape


specs = st.sampled_from(
    [
        pser.Frames((2, 2), STACK),
        pser.Array((2,), np.float32),
        pser.Array((), np.int64),
        pser.Array((3,), bool),
    ]
)


@given(spec=specs, envs=st.integers(1, 3), steps=st.integers(1, 12), seed=st.integers(0, 10_000))
def test_a_chunk_gives_back_every_observation_bit_for_bit(spec, envs, steps, seed):
    tape = played(Toy(spec, envs, seed), steps)
    now, following = observations_of(tape.chunk(None), spec)
    assert now.dtype == following.dtype == spec.dtype
    assert now.tobytes() == tape.now[:-1].tobytes()
    assert following.tobytes() == tape.following.tobytes()


def test_a_chunk_without_an_end_carries_each_frame_once():
    tape = played(Toy(pser.Frames((8, 8), STACK), envs=2, seed=0, ends=0.0), steps=10)
    assert len(tape.chunk(None).frames) == 2 * (10 + STACK)


SETTINGS = preset_settings("classic", "gym:CartPole-v1").override({"n_step": 1, "seed": 5})


@given(
    spec=specs,
    n_step=st.integers(1, 3),
    with_td=st.booleans(),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
)
def test_chunks_make_the_memory_that_single_steps_make(spec, n_step, with_td, lengths, seed):
    """Decay, n-step returns and episodes cross the border of two chunks, as if there were none."""
    settings = SETTINGS.override({"n_step": n_step, "gamma": 0.9})
    envs = 2
    shard = Shard(settings, spec, 64, envs, 0)
    memory = pser.ReplayMemory(
        64, spec, num_envs=envs, prioritization=settings.replay.prioritization, n_step=n_step, gamma=0.9
    )
    game, rng = Toy(spec, envs, seed), np.random.default_rng(seed)
    for length in lengths:
        tape = played(game, length)
        td = rng.normal(size=(length, envs)).astype(np.float32) if with_td else None
        shard.add(None, 0.0, range(envs), tape.chunk(td))
        for t in range(length):
            memory.add(
                tape.now[t],
                tape.action[t],
                tape.reward[t],
                tape.following[t],
                tape.terminated[t],
                tape.truncated[t],
                td_error=None if td is None else td[t],
            )
    shard.serve(Request(None, 0.0, 1, 0.5).sent())
    assert len(shard.memory) == len(memory)
    assert shard.memory.max_priority == memory.max_priority
    ids = np.arange(memory.index.oldest_id, memory.index.next_id)
    np.testing.assert_array_equal(shard.memory.priorities(ids), memory.priorities(ids))
    if len(ids):
        for mine, theirs in zip(shard.memory[ids][:6], memory[ids][:6], strict=True):
            assert mine.tobytes() == theirs.tobytes()
        np.testing.assert_array_equal(shard.memory.predecessors(ids, 4), memory.predecessors(ids, 4))


@pytest.mark.parametrize("apart", [0, 40])
def test_a_shard_of_stacks_is_full_when_its_actors_take_turns(apart):
    """Told how far its streams may be apart, it stores no frame twice: otherwise the first of each chunk."""
    spec, envs, steps = pser.Frames((2, 2), STACK), 2, 20
    shard = Shard(SETTINGS.override({"n_step": 3}), spec, 1000, 4 * envs, 0, apart)
    games = [Toy(spec, envs, seed, ends=0.01) for seed in range(4)]
    for turn in range(60):
        actor = turn % 4
        streams = range(actor * envs, actor * envs + envs)
        shard.add(None, 0.0, streams, played(games[actor], steps).chunk(None))
    assert shard.serve(Request(None, 0.0, 8, 0.5, 1).sent()).status.size == len(shard.memory)
    assert (len(shard.memory) == 1000) == (apart == 40)
    stream = io.BytesIO()
    shard.memory.save(stream)
    stream.seek(0)
    again = pser.ReplayMemory.load(stream)
    assert f"apart={apart}" in repr(again)
    assert again.sample(8).ids.tolist() == shard.memory.sample(8).ids.tolist()


def test_what_a_shard_refuses_is_raised_by_its_next_answer():
    shard = Shard(SETTINGS, pser.Array((2,), np.float32), 64, 2, 0)
    tape = played(Toy(pser.Array((2,), np.float32), 2, 0), 3)
    shard.add(None, 0.0, range(2), tape.chunk(np.full((3, 2), np.nan, np.float32)))
    with pytest.raises(pser.errors.PserError, match="TD error"):
        shard.serve(Request(None, 0.0, 4, 0.5, 1).sent())


@pytest.mark.parametrize("n_step", [1, 3])
def test_a_packed_batch_is_the_batch(n_step):
    spec = pser.Frames((4, 4), STACK)
    memory = pser.ReplayMemory(64, spec, num_envs=2, n_step=n_step, seed=0)
    tape = played(Toy(spec, 2, 0), 20)
    for t in range(20):
        row = (tape.now[t], tape.action[t], tape.reward[t], tape.following[t])
        memory.add(*row, tape.terminated[t], tape.truncated[t])
    batches = [memory.sample(8, 0.5, copy=True) for _ in range(3)]
    packed = pack(iter(batches), 24)
    for value in packed:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False  # as it comes out of Ray
    if n_step == 1:
        assert packed[0].shape == (24, STACK + 1, 4, 4)
    arrays = opened(packed)
    for number, batch in enumerate(batches):
        for mine, theirs in zip(unpack(arrays, 8 * number, 8 * number + 8), batch, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.flags.writeable


@pytest.mark.parametrize(("shape", "high"), [((4, 10, 10), 2), ((3, 3), 2), ((4, 10, 10), 3)])
def test_zeros_and_ones_travel_as_bits(shape, high):
    memory = pser.ReplayMemory(64, pser.Array(shape, np.uint8), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        now, following = rng.integers(0, high, (2, *shape), dtype=np.uint8)
        memory.add(now, 0, 0.0, following, False, False)
    batches = [memory.sample(8, 0.5, copy=True) for _ in range(2)]
    packed = pack(iter(batches), 16)
    assert isinstance(packed[1], Bits) == (high == 2)
    arrays = opened(packed)
    for number, batch in enumerate(batches):
        again = unpack(arrays, 8 * number, 8 * number + 8)
        assert again.observation.dtype == np.uint8
        np.testing.assert_array_equal(again.observation, batch.observation)
        np.testing.assert_array_equal(again.next_observation, batch.next_observation)


def test_updates_of_several_batches_stay_those_of_several():
    learned = [(np.arange(3), np.ones(3, np.float32)), (np.array([7]), np.array([5.0], np.float32))]
    sent = pickle.loads(pickle.dumps(updates_of(learned)))
    for (ids, signals), (mine, own) in zip(sent.batches(), learned, strict=True):
        np.testing.assert_array_equal(ids, mine)
        np.testing.assert_array_equal(signals, own)
    assert updates_of([]) is None
