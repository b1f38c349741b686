"""The tests cry wolf as often as they say, with as many seeds as are run: simulated where nothing differs."""

from statistics import NormalDist

import numpy as np
import pytest
from tests.scores import DISTRIBUTIONS, all_or_nothing, normal, skewed

from pser.analysis.statistics.aggregate import mean
from pser.analysis.statistics.bootstrap import gain_interval, improvement_interval, stratified_interval
from pser.analysis.statistics.comparisons import holm
from pser.analysis.statistics.paired import paired_p_value
from pser.analysis.statistics.permutation import permutation_p_value
from pser.analysis.statistics.shares import share_p_value
from pser.analysis.statistics.shift import shift_interval, win_counts

LEVEL = 0.05
SIMULATIONS = 1500


def rate(p_values, level=LEVEL):
    return float(np.mean(np.asarray(p_values) <= level))


def error_of(expected):
    """Four standard errors of a rate over the simulations."""
    return 4.0 * np.sqrt(max(expected * (1 - expected), 1e-9) / SIMULATIONS)


def attained(seeds, level):
    """How often an exact rank test without ties may cry at most: its attainable p-values are few."""
    counts = win_counts(seeds, seeds)
    far = np.abs(np.arange(len(counts)) - (len(counts) - 1) / 2)
    p_values = np.array([counts[far >= distance].sum() for distance in far]) / counts.sum()
    return float(counts[p_values <= level].sum() / counts.sum())


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.1])
def test_permutation_test_alarms_as_often_as_it_says(seeds, level):
    rng = np.random.default_rng(seeds)
    found = [
        permutation_p_value([normal(rng, seeds)], [normal(rng, seeds)], rng, permutations=400)
        for _ in range(SIMULATIONS)
    ]
    expected = attained(seeds, level)
    assert expected <= level
    assert (seeds, level) != (3, 0.05) or expected == 0.0  # three seeds can never reach 0.05
    assert rate(found, level) == pytest.approx(expected, abs=error_of(expected) + 0.005)


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("draw", DISTRIBUTIONS[1:])
def test_permutation_test_does_not_mind_how_the_scores_are_spread(seeds, draw):
    rng = np.random.default_rng(10 + seeds)
    found = [
        permutation_p_value([draw(rng, seeds)], [draw(rng, seeds)], rng, permutations=400)
        for _ in range(SIMULATIONS)
    ]
    assert rate(found) <= LEVEL + error_of(LEVEL)


@pytest.mark.parametrize("seeds", [3, 5])
def test_permutation_test_over_five_games_alarms_one_time_in_twenty(seeds):
    rng = np.random.default_rng(20 + seeds)

    def games():
        return [draw(rng, seeds) for draw in (*DISTRIBUTIONS, normal, skewed)]

    found = [permutation_p_value(games(), games(), rng, permutations=400) for _ in range(SIMULATIONS)]
    assert rate(found) == pytest.approx(LEVEL, abs=error_of(LEVEL) + 0.01)
    assert rate(found) <= LEVEL + error_of(LEVEL)


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("draw", DISTRIBUTIONS)
def test_paired_test_alarms_as_often_as_it_says(seeds, draw):
    rng = np.random.default_rng(30 + seeds)
    found = []
    for _ in range(SIMULATIONS):
        shared = rng.normal(0.0, 5.0, seeds)  # what a seed does to both sides
        found.append(paired_p_value([draw(rng, seeds) + shared], [draw(rng, seeds) + shared], rng))
    few = 2.0 ** (1 - seeds) > LEVEL  # what a clean sweep of so many pairs gives
    if few:
        assert rate(found) == 0.0  # five pairs give 0.0625 at best
        assert rate(found, 0.25) <= 0.25 + error_of(0.25)
    else:
        assert rate(found) <= LEVEL + error_of(LEVEL)
    if draw is not all_or_nothing:  # equal pairs only make it more careful
        level = 0.25 if few else LEVEL
        assert rate(found, level) == pytest.approx(level, abs=error_of(level) + 0.003)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_holm_keeps_whole_families_of_comparisons_at_one_false_alarm_in_twenty(seeds):
    """Five arms against the same baseline over three games, none better."""
    rng = np.random.default_rng(40 + seeds)
    corrected, plain = [], []
    for _ in range(400):
        base = [draw(rng, seeds) for draw in DISTRIBUTIONS]
        arms = [[draw(rng, seeds) for draw in DISTRIBUTIONS] for _ in range(5)]
        p_values = [permutation_p_value(arm, base, rng, permutations=400) for arm in arms]
        plain.append(min(p_values))
        corrected.append(min(holm(p_values)))
    allowed = LEVEL + 4.0 * np.sqrt(LEVEL * (1 - LEVEL) / 400)
    assert rate(corrected) <= allowed
    assert rate(plain) > allowed  # uncorrected, the same families would alarm far too often


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_shares_of_runs_that_take_off_are_told_apart_no_more_often_than_said(seeds, share):
    rng = np.random.default_rng(50 + seeds)
    hits = rng.binomial(seeds, share, size=(SIMULATIONS, 2))
    found = [share_p_value(int(x), seeds, int(y), seeds) for x, y in hits]
    assert rate(found) <= LEVEL + error_of(LEVEL)


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("draw", DISTRIBUTIONS)
def test_shift_interval_holds_the_true_shift_as_often_as_it_says(seeds, draw):
    rng = np.random.default_rng(60 + seeds)
    missed = []
    for _ in range(SIMULATIONS):
        found = shift_interval(draw(rng, seeds) + 2.0, draw(rng, seeds))
        missed.append(float(found.excludes(2.0)))
    expected = attained(seeds, LEVEL)
    assert np.mean(missed) <= expected + error_of(expected)


GAMES = {"three seeds of five games": [3] * 5, "ten of six and three of five": [10] * 6 + [3] * 5}


@pytest.mark.parametrize("seeds", GAMES.values(), ids=GAMES)
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_improvement_interval_holds_the_true_probability_as_often_as_it_says(seeds, shift):
    rng = np.random.default_rng(80)
    true = NormalDist().cdf(shift / np.sqrt(2))  # that of a normal run shifted by so much
    rates = {}
    for left_out in (0, 1):
        missed = []
        for _ in range(400):
            x, y = ([normal(rng, runs) + by for runs in seeds] for by in (shift, 0.0))
            missed.append(improvement_interval(x, y, rng, resamples=300, left_out=left_out).excludes(true))
        rates[left_out] = np.mean(missed)
    assert rates[1] <= LEVEL + 3.0 * np.sqrt(LEVEL * (1 - LEVEL) / 400)
    assert rates[0] > rates[1]  # as many draws as runs give too narrow intervals


@pytest.mark.parametrize("seeds", GAMES.values(), ids=GAMES)
def test_interval_of_an_aggregate_misses_the_true_one_at_most_one_time_in_ten(seeds):
    """One side has half the runs of two: its interval stays a little too narrow with three seeds."""
    rng = np.random.default_rng(85)
    rates = {}
    for left_out in (0, 1):
        missed = []
        for _ in range(400):
            scores = [normal(rng, runs) for runs in seeds]
            found = stratified_interval(mean, scores, rng, resamples=300, left_out=left_out)
            missed.append(found.excludes(7.0))
        rates[left_out] = np.mean(missed)
    assert rates[1] <= 2 * LEVEL
    assert rates[0] > rates[1]  # as many draws as runs give too narrow intervals


@pytest.mark.parametrize("seeds", GAMES.values(), ids=GAMES)
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_gain_interval_holds_the_true_gain_as_often_as_it_says(seeds, shift):
    rng = np.random.default_rng(90)
    scales = rng.uniform(2.0, 4.0, len(seeds))
    true = shift * np.mean(1.0 / scales)
    rates = {}
    for left_out in (0, 1):
        missed = []
        for _ in range(400):
            x, y = ([normal(rng, runs) + by for runs in seeds] for by in (shift, 0.0))
            missed.append(gain_interval(x, y, scales, rng, resamples=300, left_out=left_out).excludes(true))
        rates[left_out] = np.mean(missed)
    assert rates[1] <= LEVEL + 3.0 * np.sqrt(LEVEL * (1 - LEVEL) / 400)
    assert rates[0] > rates[1]  # as many draws as runs give too narrow intervals


def test_a_real_difference_is_found():
    rng = np.random.default_rng(70)
    found = [
        permutation_p_value([normal(rng, 10) + 2.0], [normal(rng, 10)], rng, permutations=400)
        for _ in range(100)
    ]
    assert rate(found) > 0.9
