"""SEMANTICS: frame stacks. Each frame is stored once, and what was given comes back bit for bit."""

import subprocess
import sys

import numpy as np
import pytest

import pser
from pser import _kernel
from pser.errors import PserError
from strategies import memory_pair

from .games import PADDINGS, FrameGame, MemoryDriver

SETTINGS = {}


@pytest.fixture(autouse=True, params=[False, True], ids=["plain", "compressed"])
def compress(request, monkeypatch):
    """Every test twice."""
    monkeypatch.setitem(SETTINGS, "compress", request.param)
    return request.param


def driver(capacity=20, shape=(2, 3), stack=4, num_envs=1, padding="repeat", dtype=np.uint8, **rest):
    memory, model = memory_pair(
        capacity, pser.Frames(shape, stack=stack, dtype=dtype, **SETTINGS), num_envs=num_envs, **rest
    )
    return MemoryDriver(memory, model, [FrameGame(shape, stack, padding, e, dtype) for e in range(num_envs)])


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stack", [1, 2, 4])
def test_observations_come_back_bit_for_bit_whatever_the_padding_after_a_reset(padding, stack):
    d = driver(stack=stack, padding=padding)
    for t in range(60):
        d.step(["terminated" if t % 7 == 6 else ""])
        if t % 5 == 0:
            d.compare_everything()
    d.compare_everything()


@pytest.mark.parametrize("padding", PADDINGS)
def test_a_truncated_episode_gives_back_its_true_final_observation(padding):
    d = driver(padding=padding)
    for t in range(9):
        d.step(["truncated" if t % 3 == 2 else ""])
    d.compare_everything()
    batch = d.memory.sample(64, beta=0.5)
    ends = [row for row, i in enumerate(batch.ids.tolist()) if i % 3 == 2]
    assert ends
    assert (batch.discount[ends] > 0).all()


@pytest.mark.parametrize("end", ["life", "life and jump"])
def test_a_lost_life_ends_the_learning_episode_but_not_the_run_of_frames(end):
    d = driver(eps=0.0, eta=0.0, rho=0.5, window=5, alpha=0.0)
    for t in range(12):
        d.step([end if t == 5 else ""], priority=[0.0])
    d.compare_everything()
    d.memory.update_priorities([8], [8.0])
    d.model.index.update([8], [8.0])
    assert d.memory.priorities(np.arange(5, 9)).tolist() == [0.0, 2.0, 4.0, 8.0]
    batch = d.memory.sample(64, beta=0.5)
    row = batch.ids.tolist().index(5)
    assert batch.terminated[row]
    assert batch.discount[row] == 0.0


def test_frames_survive_the_end_of_the_ring():
    d = driver(capacity=13)
    for t in range(200):
        d.step(["terminated" if t % 11 == 10 else ""])
        if t % 9 == 0:
            d.compare_everything()
    assert len(d.memory) == 13  # episodes of usual length cost no transition


@pytest.mark.parametrize("length", [1, 2, 3])
def test_very_short_episodes_never_give_a_wrong_frame(length):
    for padding in PADDINGS:
        d = driver(capacity=16, padding=padding)
        for t in range(100):
            d.step(["terminated" if t % length == length - 1 else ""])
            if t % 10 == 9:
                d.compare_everything()
        assert len(d.memory) >= 1


def test_a_slow_asynchronous_stream_keeps_its_stacks():
    d = driver(capacity=24, num_envs=3)
    rng = np.random.default_rng(0)
    for t in range(300):
        stream = [0] if t % 17 else [0, 1, 2]
        if t % 50 == 7:
            stream = [2, 0]
        ends = ["terminated" if rng.random() < 0.05 else "" for _ in stream]
        d.step(ends, stream=stream)
        if t % 10 == 9:
            d.compare_everything()


@pytest.mark.parametrize("n_step", [2, 3, 5])
@pytest.mark.parametrize("num_envs", [1, 3])
def test_n_step_transitions_of_frames(n_step, num_envs):
    d = driver(capacity=30, num_envs=num_envs, n_step=n_step)
    rng = np.random.default_rng(n_step)
    ends = ["", "", "", "", "", "", "", "terminated", "truncated", "life"]
    for t in range(60):
        d.step([str(rng.choice(ends)) for _ in range(num_envs)])
        if len(d.memory) and t % 7 == 0:
            d.compare_everything()
    d.end_episodes()
    d.compare_everything()


def test_random_ends_and_paddings_in_many_environments():
    d = driver(capacity=50, num_envs=4)
    rng = np.random.default_rng(4)
    ends = ["", "", "", "", "", "terminated", "truncated", "life", "life and jump"]
    for t in range(150):
        for game in d.games:
            game.padding = str(rng.choice(PADDINGS))
        d.step([str(rng.choice(ends)) for _ in d.games])
        if t % 13 == 0:
            d.compare_everything()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16, np.float64])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (3, 2, 2)])
def test_frames_of_any_shape_and_dtype(dtype, shape):
    d = driver(shape=shape, dtype=dtype, stack=3)
    for t in range(40):
        d.step(["terminated" if t % 6 == 5 else ""])
    d.compare_everything()


def test_observation_and_next_observation_share_one_array_when_n_step_is_one():
    d = driver()
    for _ in range(10):
        d.step([""])
    batch = d.memory.sample(8, beta=0.5)
    assert batch.observation.shape == batch.next_observation.shape == (8, 4, 2, 3)
    assert np.shares_memory(batch.observation, batch.next_observation)


def test_a_next_observation_that_is_not_shifted_by_one_frame_is_refused():
    d = driver()
    for _ in range(3):
        d.step([""])
    observation = d.games[0].observation
    unrelated = np.stack([d.games[0].frame() for _ in range(4)])
    with pytest.raises(PserError, match="one frame"):
        d.memory.add(observation, 0, 0.0, unrelated, False, False)
    assert len(d.memory) == 3
    d.step([""])
    d.compare_everything()


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_a_next_observation_that_is_not_shifted_is_refused_at_an_episodes_end_too(end, n_step):
    d = driver(n_step=n_step)
    for _ in range(3):
        d.step([""])
    first_of_the_next = d.games[0].reset()
    before = len(d.memory)
    with pytest.raises(PserError, match="at an episode's end the final"):
        d.memory.add(
            d.games[0].observation, 0, 0.0, first_of_the_next, end == "terminated", end == "truncated"
        )
    assert len(d.memory) == before
    d.step([end])
    d.compare_everything()


def test_an_observation_that_does_not_continue_the_episode_is_refused_or_kept_exactly():
    d = driver()
    for _ in range(3):
        d.step([""])
    before = d.games[0].observation
    d.games[0].observation = d.games[0].reset()  # a reset that nobody announced
    try:
        d.step([""])
    except PserError:
        assert len(d.memory) == 3
        d.model.transitions.pop(3, None)
        d.games[0].observation = before
        d.step([""])
    d.compare_everything()


def test_cutting_the_episodes_allows_an_unannounced_reset():
    d = driver(num_envs=2)
    for _ in range(3):
        d.step(["", ""])
    d.end_episodes(stream=[1])
    for _ in range(3):
        d.step(["", ""])
    d.end_episodes()
    d.step(["", ""])
    d.compare_everything()


def test_a_dict_may_hold_frames_and_arrays():
    space = {"screen": pser.Frames((2, 3), stack=3, **SETTINGS), "speed": pser.Array((2,), np.float32)}
    memory, model = memory_pair(12, space)
    game, rng = FrameGame((2, 3), 3), np.random.default_rng(0)

    class Both:
        def step(self, end):
            screen, next_screen, terminated, truncated = game.step(end)
            speed, next_speed = rng.normal(size=(2, 2)).astype(np.float32)
            return (
                {"screen": screen, "speed": speed},
                {"screen": next_screen, "speed": next_speed},
                terminated,
                truncated,
            )

    d = MemoryDriver(memory, model, [Both()])
    for t in range(40):
        d.step(["terminated" if t % 8 == 7 else ""])
    d.compare_everything()


MEASURE = """
import sys, numpy as np, psutil, pser
shape, stack, count = (84, 84), 4, 6000
memory = pser.ReplayMemory(capacity=count, observation=pser.Frames(shape, stack=stack, compress=sys.argv[1] == 'True'),
                           action=pser.Array((), np.int64), seed=0)
rng = np.random.default_rng(0)
frames = rng.integers(0, 256, (64, *shape), dtype=np.uint8)
stacks = np.stack([frames[[(i + j) % 64 for j in range(stack)]] for i in range(64)])
process = psutil.Process()
memory.add(stacks[0], 0, 0.0, stacks[1], False, False)
before = process.memory_info().rss
for t in range(1, count):
    memory.add(stacks[t % 64], 0, 0.0, stacks[(t + 1) % 64], False, t % 500 == 499)
print((process.memory_info().rss - before) / (count - 1))
"""


@pytest.mark.skipif(
    bool(_kernel.SANITIZER), reason="a sanitizer keeps what was freed, and walls around the rest"
)
def test_each_frame_is_stored_once(compress):
    command = [sys.executable, "-c", MEASURE, str(compress)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    bytes_per_transition = float(done.stdout)
    assert bytes_per_transition < 1.1 * 84 * 84
