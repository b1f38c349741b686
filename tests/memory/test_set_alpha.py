"""Another α in the middle of a run: the same as if it had been so from the start, raw priorities being what counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser

RULES = [
    pser.PSER(rho=0.8, window=4, eta=0.3),
    pser.PSER(rho=0.8, window=4, decay="add", weights="memory"),
    pser.PER(weights="memory"),
    pser.PER(variant="rank"),
]
ALPHAS = st.sampled_from([0.0, 0.02, 0.3, 0.5, 1.0])


def learned(rule, seed, capacity=7, steps=20):
    index, rng = pser.PriorityIndex(capacity, rule, seed=0), np.random.default_rng(seed)
    for _ in range(steps):
        index.append([bool(rng.random() < 0.3)])
        ids, _ = index.sample(3)
        index.update(ids, rng.normal(size=3))
    return index


@pytest.mark.parametrize("rule", RULES)
@given(first=ALPHAS, second=ALPHAS, seed=st.integers(0, 2**32))
def test_probabilities_are_those_of_an_index_that_always_had_this_alpha(rule, first, second, seed):
    index = learned(replace(rule, alpha=first), seed)
    ids = np.arange(index.oldest_id, index.next_id)
    raw = index.priority(ids)
    index.set_alpha(second)
    index.check_invariants()
    assert index.prioritization == replace(rule, alpha=second)
    np.testing.assert_array_equal(index.priority(ids), raw)
    other = pser.PriorityIndex(
        7,
        replace(index.prioritization, **({"decay_on_insert": False} if isinstance(rule, pser.PSER) else {})),
    )
    other.append([True] * 7, raw, stream=[0] * 7)
    np.testing.assert_allclose(index.probabilities(ids), other.probabilities(np.arange(7)), rtol=1e-12)
    # Learning goes on by the new rule.
    index.update(ids, np.full(len(ids), 2.0))
    index.check_invariants()


def test_the_share_that_came_by_decay_follows_alpha():
    index = pser.PriorityIndex(4, pser.PSER(alpha=1.0, rho=0.5, window=3, eta=0.0, eps=0.0))
    index.append([True, False], [0.25, 0.25], stream=[0, 0])
    index.update([1], [2.0])
    assert index.priority([0, 1]).tolist() == [1.0, 2.0]
    assert index.stats()["decayed_share"] == pytest.approx(0.75 / 3.0)
    index.set_alpha(0.5)
    assert index.stats()["decayed_share"] == pytest.approx((1.0 - 0.5) / (1.0 + 2**0.5))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), "much"])
def test_an_alpha_that_makes_no_sense_is_refused_and_nothing_changes(alpha):
    index = learned(RULES[0], 0)
    before = index.probabilities([index.oldest_id]), index.prioritization
    with pytest.raises(pser.PserError, match="alpha must be from 0 to 1"):
        index.set_alpha(alpha)
    assert (index.probabilities([index.oldest_id]), index.prioritization) == before


def test_uniform_has_no_alpha():
    with pytest.raises(pser.PserError, match=r"use pser\.PER or pser\.PSER"):
        pser.PriorityIndex(4, pser.Uniform()).set_alpha(0.5)


def test_a_new_seed_draws_as_a_new_index_would():
    index, other = learned(RULES[0], 0), learned(RULES[0], 0)
    index.sample(5)
    index.reseed(3)
    other.reseed(3)
    np.testing.assert_array_equal(index.sample(50)[0], other.sample(50)[0])
