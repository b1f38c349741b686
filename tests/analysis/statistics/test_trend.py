"""Whether scores rise with a setting, against pairs written out and against chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.analysis.statistics.permutation import permutation_p_value
from pser.analysis.statistics.trend import probability_of_rise, rise_p_value
from pser.errors import PserError


def by_pairs(levels, scores):
    """One task: every pair of runs with different levels, written out."""
    won = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for level, low in zip(levels, scores, strict=True)
        for other, high in zip(levels, scores, strict=True)
        if level < other
    ]
    return sum(won) / len(won)


runs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=12).filter(
    lambda task: len({level for level, _ in task}) > 1
)


@given(st.lists(runs, min_size=1, max_size=3))
def test_it_is_the_share_of_pairs_in_which_the_higher_level_scores_higher(tasks):
    levels = [np.array([float(level) for level, _ in task]) for task in tasks]
    scores = [np.array([float(score) for _, score in task]) for task in tasks]
    expected = np.mean([by_pairs(*task) for task in zip(levels, scores, strict=True)])
    assert probability_of_rise(levels, scores) == pytest.approx(expected)


def test_two_levels_make_it_the_test_of_improvement():
    rng = np.random.default_rng(0)
    x, y = [rng.normal(1, 1, 4) for _ in range(2)], [rng.normal(0, 1, 3) for _ in range(2)]
    levels = [np.array([0.6] * 3 + [0.8] * 4)] * 2
    scores = [np.concatenate(task) for task in zip(y, x, strict=True)]
    assert probability_of_rise(levels, scores) == pytest.approx(probability_of_improvement(x, y))
    found = rise_p_value(levels, scores, rng, permutations=20_000)
    assert found == pytest.approx(permutation_p_value(x, y, rng, permutations=20_000), abs=0.015)


def test_it_alarms_as_often_as_it_says():
    rng = np.random.default_rng(1)
    levels = [np.repeat([0.4, 0.6, 0.8, 1.2], 3)] * 2
    found = [
        rise_p_value(levels, [rng.lognormal(0, 1, 12) for _ in levels], rng, permutations=300)
        for _ in range(1000)
    ]
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_a_rise_over_several_levels_is_found_where_no_two_of_them_could_show_it():
    rng = np.random.default_rng(2)
    levels = np.repeat([0.4, 0.6, 0.8], 3)
    scores = levels + rng.normal(0, 0.02, 9)
    assert rise_p_value([levels], [scores], rng) < 0.01
    assert permutation_p_value([scores[6:]], [scores[:3]], rng) == pytest.approx(0.1)
    assert rise_p_value([levels], [-scores], rng) < 0.01


def test_one_level_is_refused():
    with pytest.raises(PserError, match="two levels"):
        probability_of_rise([np.ones(3)], [np.arange(3.0)])
