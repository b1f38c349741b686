from itertools import combinations

import numpy as np
import pytest

from pser.analysis.statistics import permutation
from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.analysis.statistics.influence import Tally, sign_test
from pser.analysis.statistics.permutation import arrangements, permutation_p_value
from pser.errors import PserError


def brute_force(x, y):
    """One task, every split written out."""
    pooled = np.concatenate([x, y])
    observed = abs(probability_of_improvement([x], [y]) - 0.5)
    distances = []
    for chosen in combinations(range(len(pooled)), len(x)):
        left = pooled[list(chosen)]
        right = np.delete(pooled, chosen)
        distances.append(abs(probability_of_improvement([left], [right]) - 0.5))
    return np.mean(np.array(distances) >= observed - 1e-12)


def test_small_tables_are_counted_exactly():
    x, y = np.array([1.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0, 0.0])
    p = permutation_p_value([x], [y], np.random.default_rng(0))
    assert p == pytest.approx(brute_force(x, y))


def test_clean_sweep_of_three_seeds_each_is_one_in_ten_two_sided():
    x, y = [np.array([4.0, 5.0, 6.0])], [np.array([1.0, 2.0, 3.0])]
    assert arrangements(x, y) == 20
    assert permutation_p_value(x, y, np.random.default_rng(0)) == pytest.approx(0.1)


def test_one_seed_a_game_makes_it_the_sign_test():
    rng = np.random.default_rng(1)
    x = [np.array([v]) for v in rng.normal(0.4, 1, 12)]
    y = [np.array([v]) for v in rng.normal(0.0, 1, 12)]
    wins = sum(bool(a > b) for a, b in zip(x, y, strict=True))
    expected = sign_test(Tally(wins=wins, ties=0, losses=12 - wins))
    assert permutation_p_value(x, y, rng) == pytest.approx(expected)


def test_sampled_shuffles_agree_with_the_exact_count(monkeypatch):
    rng = np.random.default_rng(2)
    x = [rng.normal(0.8, 1, 4) for _ in range(2)]
    y = [rng.normal(0.0, 1, 4) for _ in range(2)]
    exact = permutation_p_value(x, y, rng)
    monkeypatch.setattr(permutation, "EXACT_LIMIT", 0)
    sampled = permutation_p_value(x, y, np.random.default_rng(3), permutations=20_000)
    assert sampled == pytest.approx(exact, abs=0.015)


def test_equal_sides_are_no_evidence_and_the_value_is_never_zero():
    same = [np.array([1.0, 2.0, 3.0])]
    assert permutation_p_value(same, same, np.random.default_rng(0)) == 1.0
    far = [np.arange(10.0) + 100], [np.arange(10.0)]
    assert 0 < permutation_p_value(*far, np.random.default_rng(0)) < 0.001
    with pytest.raises(PserError, match="at least one shuffle"):
        permutation_p_value(same, same, np.random.default_rng(0), permutations=0)


def test_the_observed_arrangement_is_one_of_the_shuffles(monkeypatch):
    monkeypatch.setattr(permutation, "EXACT_LIMIT", 0)
    far = [np.arange(10.0) + 100], [np.arange(10.0)]
    assert permutation_p_value(*far, np.random.default_rng(0), permutations=50) == 1 / 51
