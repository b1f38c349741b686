"""The benchmark of Ray drives what a run drives: its shard keeps the chunks it is given, and gives batches of them."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.cluster.fed import Fed
from benchmarks.cluster.spent import measured
from benchmarks.cluster.tasks import TASKS, add_chunk, chunks_of, fill, memory_of


@pytest.mark.parametrize("name", TASKS)
def test_the_shard_that_is_measured_holds_what_the_memory_beside_it_holds(ray, name):
    task = replace(TASKS[name], capacity=400, chunk_steps=10)
    memory = memory_of(task)
    fill(task, lambda chunk: add_chunk(memory, task, chunk))
    fed = Fed(task, 32)
    try:
        assert fed.per_call == {"minatar": 16, "atari": 9}[name]
        spent = measured(lambda: fed.ingest(3), 30)
        for chunk in chunks_of(task, 1)[:3]:
            add_chunk(memory, task, chunk)
        assert min(spent.values()) > 0.0
        for _ in range(fed.per_call + 1):
            batch = fed.draw()
            same = memory[batch.ids]
            np.testing.assert_array_equal(batch.observation, same.observation)
            np.testing.assert_array_equal(batch.next_observation, same.next_observation)
            np.testing.assert_array_equal(batch.action, same.action)
            fed.learned(batch, np.ones(32, np.float32))
        fed.settle()
    finally:
        fed.close()
