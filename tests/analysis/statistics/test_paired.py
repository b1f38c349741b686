from itertools import product

import numpy as np
import pytest

from pser.analysis.statistics import paired
from pser.analysis.statistics.influence import Tally, sign_test
from pser.analysis.statistics.paired import paired_p_value
from pser.errors import PserError


def brute_force(x, y):
    """One task, every flip written out."""
    differences = [a - b for a, b in zip(x, y, strict=True)]
    observed = abs(sum(differences))
    sums = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(total >= observed - 1e-9 for total in sums) / len(sums)


def test_few_pairs_are_counted_exactly():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.normal(0.5, 1, 6), rng.normal(0.0, 1, 6)
        assert paired_p_value([x], [y], rng) == pytest.approx(brute_force(x, y))


def test_clean_sweep_of_n_pairs_gives_the_smallest_value_there_is():
    for pairs in (1, 3, 5, 10):
        y = np.arange(float(pairs))
        found = paired_p_value([y + 2.0], [y], np.random.default_rng(0))
        assert found == pytest.approx(2.0 ** (1 - pairs))


def test_one_pair_a_task_of_equal_weight_is_the_sign_test():
    rng = np.random.default_rng(1)
    x = [np.array([v]) for v in rng.normal(0.4, 1, 12)]
    y = [np.array([v]) for v in rng.normal(0.0, 1, 12)]
    wins = sum(bool(a > b) for a, b in zip(x, y, strict=True))
    expected = sign_test(Tally(wins=wins, ties=0, losses=12 - wins))
    assert paired_p_value(x, y, rng) == pytest.approx(expected)


def test_no_task_outweighs_another_by_its_scale():
    rng = np.random.default_rng(2)
    x = [rng.normal(0.5, 1, 4), rng.normal(0.5, 1, 4)]
    y = [rng.normal(0.0, 1, 4), rng.normal(0.0, 1, 4)]
    scaled = [x[0], 1000 * x[1]], [y[0], 1000 * y[1]]
    assert paired_p_value(*scaled, rng) == pytest.approx(paired_p_value(x, y, rng))


def test_sampled_flips_agree_with_the_exact_count(monkeypatch):
    rng = np.random.default_rng(3)
    x, y = [rng.normal(0.6, 1, 10)], [rng.normal(0.0, 1, 10)]
    exact = paired_p_value(x, y, rng)
    monkeypatch.setattr(paired, "EXACT_LIMIT", 0)
    assert paired_p_value(x, y, rng, permutations=20_000) == pytest.approx(exact, abs=0.015)


def test_equal_runs_are_no_evidence():
    same = [np.array([1.0, 2.0, 3.0])]
    assert paired_p_value(same, same, np.random.default_rng(0)) == 1.0


def test_unpaired_runs_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(PserError, match="task 0 has 3 and 2"):
        paired_p_value([np.arange(3.0)], [np.arange(2.0)], rng)
    with pytest.raises(PserError, match="the same tasks; got 2 and 1"):
        paired_p_value([np.arange(3.0)] * 2, [np.arange(3.0)], rng)
    with pytest.raises(PserError, match="at least one flip"):
        paired_p_value([np.arange(3.0)], [np.arange(3.0)], rng, permutations=0)
