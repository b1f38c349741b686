"""SEMANTICS: threads. No public call waits for itself, what is read meanwhile is whole, a forked child works."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import pser
from pser.errors import PserError

LONG = 30.0
"""Seconds after which a call counts as hung."""


def in_time(job):
    """What the job gives, run in a thread of its own that must end."""
    results = []

    def guarded():
        try:
            results.append((True, job()))
        except BaseException as error:
            results.append((False, error))

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive(), "the call hangs"
    fine, result = results[0]
    if not fine:
        raise result
    return result


def filled(kind=None, streams=1):
    index = pser.PriorityIndex(20, kind or pser.PSER(), num_streams=streams, seed=0)
    for i in range(10):
        index.append([i == 0] * streams)
    return index


@pytest.mark.parametrize(
    "kind", [pser.PSER(), pser.PER(variant="rank"), pser.Uniform()], ids=lambda k: type(k).__name__
)
def test_whoever_holds_the_lock_can_go_on_calling(kind, tmp_path):
    index = filled(kind)

    def job():
        with index.locked(), index.locked():
            ids, _ = index.sample(2)
            index.append([False])
            index.update(ids, [1.0, 2.0])
            index.priority(ids)
            index.probabilities(ids)
            index.cut(0)
            index.stats()
            index.columns()
            index.check_invariants()
            index.save(tmp_path / "index")
            return len(index), index.next_id, index.oldest_id, index.max_priority, index.total_mass

    size, next_id, oldest_id, _, _ = in_time(job)
    assert (size, next_id, oldest_id) == (11, 11, 0)
    assert len(in_time(lambda: index.sample(3))[0]) == 3  # the lock was given back


def test_a_memory_can_be_used_under_its_indexs_lock(tmp_path):
    memory = pser.ReplayMemory(20, pser.Array((2,)), seed=0)

    def job():
        with memory.index.locked():
            memory.add(np.zeros(2, np.float32), 0, 0.0, np.ones(2, np.float32), False, False)
            batch = memory.sample(2)
            memory.update_priorities(batch.ids, [1.0, 2.0])
            memory.end_episodes()
            memory.save(tmp_path / "memory")
            return len(memory)

    assert in_time(job) == 1


def test_others_wait_for_the_lock_but_can_read_the_counts():
    index = filled()
    sampled = threading.Event()
    with index.locked():
        waiting = threading.Thread(target=lambda: (index.sample(2), sampled.set()), daemon=True)
        waiting.start()
        read = in_time(
            lambda: (len(index), index.next_id, index.oldest_id, index.max_priority, index.total_mass)
        )
        assert read == (10, 10, 0, 1.0, 10.0)
        assert not sampled.wait(0.05)
    waiting.join(LONG)
    assert sampled.is_set()


def test_the_lock_of_another_thread_cannot_be_given_back():
    index = filled()
    with index.locked():
        with pytest.raises(PserError, match="does not hold"):
            in_time(index._kernel.unlock)
        assert len(index.sample(2)[0]) == 2


def test_an_error_under_the_lock_gives_it_back():
    index = filled()
    with pytest.raises(PserError), index.locked():
        index.update([99], [1.0])
    in_time(lambda: index.sample(2))


FORK = """
import os, sys, threading, time, warnings
import pser
warnings.simplefilter("ignore")  # Python itself advises against forking with threads
indexes = [pser.PriorityIndex(1000, pser.PSER(), seed=s) for s in range(3)]
for index in indexes:
    for i in range(1000):
        index.append([i % 50 == 0])
stop = threading.Event()

def busy():
    while not stop.is_set():
        for index in indexes:
            ids, _ = index.sample(512)
            index.update(ids, ids % 7 + 0.5)

def nested():  # holds one while it waits for others: the fork must not do so too
    while not stop.is_set():
        with indexes[1].locked():
            time.sleep(0.0002)
            indexes[0].sample(8)
            indexes[2].sample(8)

threads = [threading.Thread(target=job) for job in (busy, busy, nested)]
for thread in threads:
    thread.start()
for turn in range(40):
    child = os.fork()
    if child == 0:
        for index in indexes:
            index.check_invariants()
            ids, _ = index.sample(32)
            index.update(ids, ids % 5 + 1.0)
            index.append([False])
            index.check_invariants()
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
stop.set()
for thread in threads:
    thread.join()
with indexes[0].locked():  # forked by the holder itself, while a thread holds another and waits for this one
    taken = threading.Event()
    def cross():
        with indexes[1].locked():
            taken.set()
            indexes[0].sample(8)
    thread = threading.Thread(target=cross)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        indexes[0].sample(4)
        indexes[2].sample(4)
        try:
            indexes[1].sample(4)
        except pser.errors.PserError as error:
            os._exit(7 if "in the child" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
thread.join()
indexes[1].sample(4)
print("all children worked")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_a_child_forked_while_other_threads_work_goes_on_with_whole_indexes():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all children worked"


def test_reads_without_the_lock_are_those_of_whole_calls():
    """Appends of eight rows at a time: no other number of rows is ever seen, nor more than the capacity."""
    index = pser.PriorityIndex(24, pser.PSER(), num_streams=8, seed=0)
    stop = threading.Event()

    def add():
        while not stop.is_set():
            index.append([False] * 8)

    thread = threading.Thread(target=add, daemon=True)
    thread.start()
    try:
        for _ in range(20_000):
            assert index.next_id % 8 == 0
            assert index.oldest_id % 8 == 0
            assert len(index) % 8 == 0
            assert len(index) <= 24
    finally:
        stop.set()
        thread.join(LONG)
