import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.scores import by_task

from pser.analysis.statistics import aggregate
from pser.analysis.statistics.bootstrap import (
    improvement_interval,
    percentile_interval,
    stratified_interval,
    stratified_resample,
    task_resample,
)
from pser.errors import PserError

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "rliable_values.json").read_text())
WITH_INTERVALS = [case for case in RECORDED["cases"] if "interval_95" in case]
CASES = pytest.mark.parametrize("case", WITH_INTERVALS, ids=lambda case: case["name"])


@CASES
@pytest.mark.parametrize("name", ["mean", "median", "iqm", "optimality_gap"])
def test_interval_agrees_with_rliable(case, name):
    scores = by_task(case["x"])
    rng = np.random.default_rng(3)
    found = stratified_interval(getattr(aggregate, name), scores, rng, resamples=50_000)
    low, high = case["interval_95"][name]
    # Both sides are Monte Carlo with 50,000 resamples: their ends wander by about 1% of the width, more where
    # the distribution of resamples has gaps.
    np.testing.assert_allclose([found.low, found.high], [low, high], atol=0.04 * (high - low))


@CASES
def test_improvement_interval_agrees_with_rliable(case):
    x, y = (by_task(case[side]) for side in "xy")
    found = improvement_interval(x, y, np.random.default_rng(4), resamples=20_000)
    low, high = case["interval_95"]["probability_of_improvement"]
    np.testing.assert_allclose([found.low, found.high], [low, high], atol=0.05 * (high - low))


def test_interval_of_a_tiny_table_is_the_enumerated_one():
    scores = [np.array([0.0, 1.0, 4.0])]
    every = np.array([np.mean(draw) for draw in product(scores[0], repeat=3)])
    found = stratified_interval(
        aggregate.mean, scores, np.random.default_rng(0), resamples=40_000, confidence=0.8
    )
    expected = np.quantile(every, [0.1, 0.9], method="inverted_cdf")
    np.testing.assert_allclose([found.low, found.high], expected)


def test_resampling_never_mixes_tasks():
    scores = [np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0])]
    first, second = stratified_resample(scores, 500, np.random.default_rng(0))
    assert first.shape == (500, 2)
    assert second.shape == (500, 3)
    assert set(np.unique(first)) == {1.0, 2.0}
    assert set(np.unique(second)) == {10.0, 20.0, 30.0}


def test_runs_left_out_make_a_draw_smaller_but_never_empty():
    scores = [np.array([7.0]), np.array([1.0, 2.0, 3.0])]
    first, second = stratified_resample(scores, 500, np.random.default_rng(0), left_out=1)
    assert first.shape == (500, 1)
    assert second.shape == (500, 2)
    assert set(np.unique(second)) == {1.0, 2.0, 3.0}
    means = second.mean(axis=1)
    assert means.var() == pytest.approx(scores[1].var(ddof=1) / 3, rel=0.1)  # that of the mean of three runs


def test_same_seed_gives_the_same_interval_and_another_seed_another():
    scores = by_task(np.random.default_rng(1).normal(size=(6, 3)))
    runs = [
        stratified_interval(aggregate.iqm, scores, np.random.default_rng(seed), resamples=200)
        for seed in (5, 5, 6)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_task_resample_draws_each_task_equally_often():
    draw = task_resample(4, 5000, np.random.default_rng(0))
    assert draw.shape == (5000, 4)
    np.testing.assert_allclose(np.bincount(draw.ravel()) / draw.size, 0.25, atol=0.02)


def test_estimate_says_whether_a_value_lies_outside():
    estimate = percentile_interval(1.0, np.linspace(0.5, 1.5, 101))
    assert estimate.excludes(0.0)
    assert not estimate.excludes(1.2)


def test_bad_bootstrap_settings_are_refused():
    with pytest.raises(PserError, match="at least one resample"):
        task_resample(3, 0, np.random.default_rng(0))
    with pytest.raises(PserError, match="between 0 and 1"):
        percentile_interval(0.0, np.zeros(3), confidence=95)
