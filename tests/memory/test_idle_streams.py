"""SEMANTICS: `end_episodes`, frame stacks. A frame lives as long as a transition that shows it can be sampled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from strategies import memory_pair

from .games import PADDINGS, FrameGame, MemoryDriver


def driver(capacity, num_envs, n_step, stack, padding="repeat"):
    memory, model = memory_pair(
        capacity,
        pser.Frames((2,), stack=stack),
        num_envs=num_envs,
        n_step=n_step,
        kind="uniform",
    )
    return MemoryDriver(memory, model, [FrameGame((2,), stack, padding, e) for e in range(num_envs)])


def compare_all(d):
    """Uniform and stratified: a batch as large as the memory holds every transition once."""
    if len(d.memory):
        batch = d.memory.sample(len(d.memory))
        assert sorted(batch.ids.tolist()) == d.model.index.ids
        d.compare_batch(batch)


@pytest.mark.parametrize("capacity", [1, 8, 30])
@pytest.mark.parametrize("n_step", [2, 3])
def test_ending_the_episode_of_a_stream_that_was_idle_for_any_time_keeps_its_frames(capacity, n_step):
    for idle in range(0, 2 * capacity + 130, 7):
        d = driver(capacity, num_envs=2, n_step=n_step, stack=3)
        for _ in range(n_step - 1):
            d.step([""], stream=[1])
        for _ in range(idle):
            d.step([""], stream=[0])
        completed = d.end_episodes(stream=[1])
        assert len(completed) == n_step - 1  # nothing that was pending is lost
        for t in range(capacity + 2):
            if t % 2 == 0:
                compare_all(d)
            d.step([""], stream=[0])


@pytest.mark.parametrize("n_step", [2, 3])
def test_a_stream_that_goes_on_after_any_idle_time_keeps_its_frames(n_step):
    for idle in range(0, 100, 3):
        d = driver(20, num_envs=2, n_step=n_step, stack=2)
        for _ in range(n_step):
            d.step([""], stream=[1])
        for _ in range(idle):
            d.step([""], stream=[0])
        d.step([""], stream=[1])
        for t in range(90):
            d.step([""], stream=[0])
            if t % 6 == 0:
                compare_all(d)


@pytest.mark.parametrize("n_step", [2, 3])
def test_frames_that_run_out_before_the_capacity_take_their_transitions_with_them_in_time(n_step):
    for idle in range(80):  # some of them leave a frame exactly as old as a new transition may show
        d = driver(20, num_envs=2, n_step=n_step, stack=2, padding="distinct")
        for _ in range(n_step - 1):
            d.step([""], stream=[1])
        for _ in range(idle):
            d.step([""], stream=[0])
        d.step([""], stream=[1])
        for _ in range(14):
            d.step(["terminated"], stream=[0])  # each of these episodes takes three frames
            compare_all(d)


streams = st.integers(0, 2)
moves = st.one_of(
    st.tuples(
        st.just("step"), streams, st.integers(1, 120), st.sampled_from([0, 0, 1, 2, 5, 9]), st.booleans()
    ),
    st.tuples(st.just("end"), st.lists(streams, min_size=1, unique=True)),
    st.tuples(st.just("reset"), streams),
    st.tuples(st.just("save")),
)


@given(
    capacity=st.integers(1, 60),
    n_step=st.integers(1, 8),
    stack=st.integers(1, 5),
    padding=st.sampled_from(PADDINGS),
    sequence=st.lists(moves, max_size=12),
)
def test_every_sampled_stack_is_what_was_given_for_as_long_as_it_can_be_sampled(
    capacity, n_step, stack, padding, sequence, tmp_path_factory
):
    d = driver(capacity, 3, n_step, stack, padding)
    for kind, *details in sequence:
        if kind == "step":
            stream, count, episode, unannounced = details
            for t in range(count):
                ends = ["terminated" if episode and t % episode == episode - 1 else ""]
                d.step(ends, stream=[stream])
                if unannounced:  # a reset that nobody tells of: no two observations share a frame
                    d.games[stream].observation = d.games[stream].reset()
                if t % 16 == 0:
                    compare_all(d)
        elif kind == "end":
            d.end_episodes(stream=details[0])
        elif kind == "reset":
            d.games[details[0]].observation = d.games[details[0]].reset()
        else:
            path = tmp_path_factory.mktemp("saved") / "memory"
            d.memory.save(path)
            d.memory = pser.ReplayMemory.load(path)
        compare_all(d)
    d.end_episodes()
    compare_all(d)
    assert np.all(d.memory.priorities(d.model.index.ids) > 0)
