"""SEMANTICS: numeric drift, none. A million updates leave the root equal to the sum of its leaves."""

import math

import numpy as np
import pytest

import pser


@pytest.mark.parametrize(
    "prioritization",
    [
        pser.PSER(alpha=1.0, rho=0.65, window=5),
        pser.PSER(alpha=1.0, rho=0.65, window=5, decay="add"),
        pser.PER(alpha=1.0),
    ],
    ids=["pser-max", "pser-add", "per"],
)
def test_a_million_updates_leave_the_root_equal_to_the_sum_of_its_leaves(prioritization):
    capacity = 5000
    index = pser.PriorityIndex(capacity, prioritization, seed=0)
    rng = np.random.default_rng(1)
    for start in range(0, capacity + 1000, 100):
        index.append(np.arange(start, start + 100) % 37 == 0, stream=np.zeros(100, np.int64))
    for exponent in rng.uniform(-8, 8, 1000):
        ids = rng.integers(index.oldest_id, index.next_id, 1000)
        index.update(ids, rng.normal(size=1000) * 10.0**exponent)
    index.check_invariants()
    leaves = index.priority(np.arange(index.oldest_id, index.next_id))
    assert index.stats()["total_mass"] == pytest.approx(math.fsum(leaves), rel=1e-12, abs=0)
    index.update(np.arange(index.oldest_id, index.next_id), np.zeros(capacity))
    leaves = index.priority(np.arange(index.oldest_id, index.next_id))
    assert index.stats()["total_mass"] == pytest.approx(math.fsum(leaves), rel=1e-12, abs=0)
