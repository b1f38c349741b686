"""SEMANTICS: one thread may add while another samples and updates. A short stress."""

import io
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import pser
from model import Rules
from strategies import as_prioritization

from .games import FrameGame

SECONDS = 0.4
KINDS = [Rules(), Rules(decay="add", window=None, rho=0.8), Rules(kind="rank"), Rules(kind="uniform")]


def run_together(*jobs):
    """Run every job in its own thread until the time is over; the first error of any is raised here."""
    stop, errors = threading.Event(), []

    def guarded(job):
        try:
            job(stop)
        except BaseException as error:
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("rules", KINDS, ids=lambda r: f"{r.kind}-{r.decay}")
def test_adding_while_sampling_and_updating_an_index(rules):
    index = pser.PriorityIndex(500, as_prioritization(rules), num_streams=4, seed=0)
    index.append([True] * 4)
    counts = {"added": 4, "applied": 0, "rows": 0}

    def add(stop):
        rng = np.random.default_rng(1)
        while not stop.is_set():
            ids = index.append(rng.random(4) < 0.05)
            assert (np.diff(ids) == 1).all()
            counts["added"] += 4

    def learn(stop):
        rng = np.random.default_rng(2)
        while not stop.is_set():
            ids, weights = index.sample(32, beta=0.5)
            assert ((weights > 0) & (weights <= 1.0)).all()
            counts["applied"] += index.update(ids, rng.normal(size=32))
            counts["rows"] += 32

    def watch(stop):
        while not stop.is_set():
            stats = index.stats()
            assert 0 < stats["size"] <= 500
            index.check_invariants()
            time.sleep(0.001)

    run_together(add, learn, watch)
    index.check_invariants()
    stats = index.stats()
    assert counts["rows"] > 0
    assert index.next_id == stats["added"] == counts["added"]
    assert stats["updates_applied"] == counts["applied"]
    assert stats["updates_applied"] + stats["updates_skipped_stale"] == counts["rows"]


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("frames", [True, False], ids=["frames", "array"])
def test_adding_while_sampling_and_updating_a_memory_never_mixes_transitions(frames, n_step):
    """Every observation carries its own checksum, so that a torn row is seen."""
    observation = pser.Frames((4, 4), stack=2) if frames else pser.Array((16,), np.int64)
    memory = pser.ReplayMemory(
        capacity=300,
        observation=observation,
        action=pser.Array((), np.int64),
        num_envs=2,
        prioritization=pser.PSER(),
        n_step=n_step,
        seed=0,
    )

    def step(t):
        if frames:
            frame = [np.full((4, 4), (t + k) % 251, np.uint8) for k in range(3)]
            x, y = np.stack(frame[:2]), np.stack(frame[1:])
        else:
            x, y = np.full(16, t), np.full(16, t + 1)
        no = np.zeros(2, bool)
        memory.add(
            np.stack([x, x]), [t, t], [float(t % 7)] * 2, np.stack([y, y]), no, np.full(2, t % 40 == 39)
        )

    for t in range(10):
        step(t)

    def add(stop):
        t = 10
        while not stop.is_set():
            step(t)
            t += 1

    def learn(stop):
        rng = np.random.default_rng(2)
        while not stop.is_set():
            batch = memory.sample(32, beta=0.5)
            t = batch.action
            reached = np.minimum(t + n_step, t - t % 40 + 40)
            for got, at in ((batch.observation, t), (batch.next_observation, reached)):
                if frames:
                    stacks = got.reshape(32, 2, 16)
                    assert (stacks[:, 0] == (at % 251)[:, None]).all()
                    assert (stacks[:, 1] == ((at + 1) % 251)[:, None]).all()
                else:
                    assert (got == at[:, None]).all()
            memory.update_priorities(batch.ids, rng.normal(size=32))

    def watch(stop):
        while not stop.is_set():
            memory.stats()
            memory.check_invariants()
            time.sleep(0.001)

    run_together(add, learn, watch)
    memory.check_invariants()


def numbered_memory(capacity=400):
    """Every part of a transition is its number, so that a torn batch is seen."""
    memory = pser.ReplayMemory(capacity, pser.Array((8,), np.int64), seed=0)
    for t in range(capacity):
        memory.add(np.full(8, t), t, float(t), np.full(8, t + 1), False, False)
    return memory


def assert_whole(batch):
    number = batch.ids
    assert (batch.action == number).all()
    assert (batch.reward == number).all()
    assert (batch.observation == number[:, None]).all()
    assert (batch.next_observation == number[:, None] + 1).all()


def test_threads_that_sample_one_size_do_not_tear_each_others_batches():
    memory = numbered_memory()

    def learn(stop):
        while not stop.is_set():
            batch = memory.sample(64)
            assert_whole(batch)
            time.sleep(0)
            assert_whole(batch)

    run_together(learn, learn, learn)


def test_threads_may_sample_many_sizes():
    memory = numbered_memory()

    def learn(stop):
        rng = np.random.default_rng()
        while not stop.is_set():
            batch = memory.sample(int(rng.integers(1, 40)))
            assert_whole(batch)

    run_together(learn, learn, learn, learn)


def test_a_batch_lives_until_its_own_thread_samples_that_size_again():
    memory = numbered_memory()
    batch = memory.sample(16)
    before = batch.ids.copy()
    other = threading.Thread(target=lambda: [memory.sample(16) for _ in range(20)])
    other.start()
    other.join()
    memory.sample(17)
    assert (batch.ids == before).all()
    again = memory.sample(16)
    assert np.shares_memory(again.ids, batch.ids)
    assert not np.shares_memory(memory.sample(16, copy=True).ids, batch.ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
def test_a_child_forked_while_others_sample_and_add_can_use_the_memory():
    memory = numbered_memory()
    failed = []

    def learn(stop):
        while not stop.is_set():
            memory.update_priorities(memory.sample(64).ids, np.ones(64))

    def add(stop):
        while not stop.is_set():
            memory.add(np.zeros(8, np.int64), 0, 0.0, np.zeros(8, np.int64), False, False)

    def fork(stop):
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    signal.alarm(30)  # a child that hangs is killed, and seen
                    memory.sample(32)
                    memory.add(np.zeros(8, np.int64), 0, 0.0, np.zeros(8, np.int64), False, False)
                    memory.check_invariants()
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            failed.append(os.waitpid(child, 0)[1])
        stop.set()

    run_together(learn, add, fork)
    assert failed == [0] * 10


def test_a_sample_that_waits_while_the_index_is_reseeded_draws_from_its_own_generator():
    """Nothing else keeps that one alive, and another may have taken its place in memory."""

    class PCG64(np.random.PCG64):
        """As NumPy's, and one can see whether it is still there."""

    index = pser.PriorityIndex(100, pser.PER(), seed=np.random.Generator(PCG64(1)))
    index.append(np.zeros(100, bool), stream=np.zeros(100, np.int64))
    old = weakref.ref(index._rng.bit_generator)
    waiting = threading.Thread(target=index.sample, args=(65,))
    alive_meanwhile = []
    with index.locked():
        waiting.start()
        time.sleep(0.2)
        index.reseed(2)
        alive_meanwhile.append(old() is not None)
    waiting.join()
    assert alive_meanwhile == [True]
    assert old() is None


def test_a_save_tells_the_generator_that_is_drawn_from_while_others_reseed():
    index = pser.PriorityIndex(100, pser.PER(), seed=1)
    index.append(np.zeros(100, bool), stream=np.zeros(100, np.int64))

    def reseed(stop):
        seed = 0
        while not stop.is_set():
            index.reseed(seed)
            seed += 1

    def save(stop):
        while not stop.is_set():
            with index.locked():
                stream = io.BytesIO()
                index.save(stream)
                expected, _ = index.sample(8)
            stream.seek(0)
            assert (pser.PriorityIndex.load(stream).sample(8)[0] == expected).all()

    run_together(reseed, save)


def test_saving_while_another_thread_adds_gives_a_whole_memory(tmp_path):
    memory = pser.ReplayMemory(
        capacity=200, observation=pser.Frames((2, 3), stack=3), action=pser.Array((), np.int64), seed=0
    )
    game = FrameGame((2, 3), 3)
    counts = []

    def add(stop):
        t = 0
        while not stop.is_set():
            observation, following, terminated, truncated = game.step("terminated" if t % 9 == 8 else "")
            memory.add(observation, t, 0.0, following, terminated, truncated)
            t += 1

    def save(stop):
        while not stop.is_set():
            path = tmp_path / "memory"
            memory.save(path)
            loaded = pser.ReplayMemory.load(path)
            loaded.check_invariants()
            counts.append(loaded.stats()["added"])

    run_together(add, save)
    assert counts == sorted(counts)
