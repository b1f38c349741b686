"""The numbers of several shards are those of one memory of the same transitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.cluster.statistics import merged_stats

AGES = {"age_mean", "age_median"}


def filled(streams, td, seed, capacity=None):
    """A memory of these streams' steps, each updated a few times by its own numbers."""
    memory = pser.ReplayMemory(capacity or 200, pser.Array((), np.float32), num_envs=len(streams), seed=0)
    steps = td.shape[1]
    ids = np.empty((steps, len(streams)), np.int64)
    for t in range(steps):
        row = np.zeros(len(streams), np.float32)
        ends = np.array([(t + s) % 5 == 4 for s in streams])
        ids[t] = memory.add(row, row.astype(np.int64), row, row, ends, ends & False, td_error=td[streams, t])
    for s, stream in enumerate(streams):
        rng = np.random.default_rng([seed, stream])
        for _ in range(3):
            chosen = rng.choice(steps, 4, replace=False)
            memory.update_priorities(ids[chosen, s], rng.exponential(size=4))
    return memory


@given(seed=st.integers(0, 1000), steps=st.integers(4, 20))
def test_shards_together_say_what_one_memory_says(seed, steps):
    td = np.random.default_rng(seed).exponential(size=(5, steps))
    one = filled([0, 1, 2, 3, 4], td, seed, 400).stats()
    merged = merged_stats([filled([0, 2, 4], td, seed).stats(), filled([1, 3], td, seed).stats()])
    assert merged.keys() == one.keys()
    for name in one.keys() - AGES:
        assert merged[name] == pytest.approx(one[name], rel=1e-12), name


def test_an_empty_shard_adds_nothing():
    td = np.random.default_rng(0).exponential(size=(2, 10))
    full = filled([0, 1], td, 0).stats()
    empty = pser.ReplayMemory(10, pser.Array((), np.float32)).stats()
    merged = merged_stats([full, empty])
    assert merged["size"] == full["size"]
    assert merged["effective_sample_size"] == pytest.approx(full["effective_sample_size"])
    assert merged["mass_from_td_error"] == pytest.approx(full["mass_from_td_error"])
    both = merged_stats([empty, empty])
    assert both["size"] == both["effective_sample_size"] == both["replays_mean"] == 0
