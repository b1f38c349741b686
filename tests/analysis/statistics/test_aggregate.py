"""The aggregates beside rliable's values (tests/data/rliable_values.json says how those were made)."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.scores import by_task

from pser.analysis.statistics import aggregate
from pser.errors import PserError

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "rliable_values.json").read_text())
CASES = pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["name"])


def scores_of(case, side="x"):
    return by_task(case[side])


def test_reference_values_were_made_by_rliable_1_2_0():
    assert RECORDED["made_by"]["rliable"] == "1.2.0"


@CASES
@pytest.mark.parametrize("name", ["mean", "median", "iqm", "optimality_gap"])
def test_aggregate_agrees_with_rliable(case, name):
    assert getattr(aggregate, name)(scores_of(case)) == pytest.approx(case[name], rel=1e-12, abs=1e-12)


@CASES
def test_optimality_gap_agrees_with_rliable_at_another_target(case):
    gap = aggregate.optimality_gap(scores_of(case), target=2.0)
    assert gap == pytest.approx(case["optimality_gap_target_2"], rel=1e-12)


@CASES
def test_probability_of_improvement_agrees_with_rliable(case):
    found = aggregate.probability_of_improvement(scores_of(case), scores_of(case, "y"))
    assert found == pytest.approx(case["probability_of_improvement"], rel=1e-12)


@CASES
def test_performance_profile_agrees_with_rliable(case):
    found = aggregate.performance_profile(scores_of(case), np.array(RECORDED["thresholds"]))
    np.testing.assert_allclose(found, case["profile"], rtol=1e-12)


@CASES
def test_leading_axes_are_evaluated_as_if_one_by_one(case):
    x = scores_of(case)
    stacked = [np.stack([task, task + 1.0]) for task in x]
    shifted = [task + 1.0 for task in x]
    for statistic in (aggregate.mean, aggregate.median, aggregate.iqm, aggregate.optimality_gap):
        np.testing.assert_allclose(statistic(stacked), [statistic(x), statistic(shifted)])
    y = [np.stack([task, task]) for task in scores_of(case, "y")]
    np.testing.assert_allclose(
        aggregate.probability_of_improvement(stacked, y),
        [aggregate.probability_of_improvement(a, scores_of(case, "y")) for a in (x, shifted)],
    )


def test_iqm_drops_a_quarter_at_each_end_of_the_pooled_runs():
    assert aggregate.iqm([np.array([-1000.0, 1.0]), np.array([3.0, 9999.0])]) == pytest.approx(2.0)


def test_tasks_may_have_different_numbers_of_runs():
    ragged = [np.array([1.0]), np.array([2.0, 4.0]), np.array([0.0, 0.0, 9.0])]
    assert aggregate.mean(ragged) == pytest.approx((1.0 + 3.0 + 3.0) / 3)
    assert aggregate.median(ragged) == pytest.approx(3.0)


def test_probability_of_improvement_of_equals_is_a_half_and_sides_sum_to_1():
    x, y = [np.array([1.0, 2.0, 2.0])], [np.array([2.0, 0.5])]
    assert aggregate.probability_of_improvement(x, x) == pytest.approx(0.5)
    forward = aggregate.probability_of_improvement(x, y)
    assert forward + aggregate.probability_of_improvement(y, x) == pytest.approx(1.0)


def test_a_gain_is_in_units_of_each_task_and_every_task_counts_alike():
    x, y = [np.array([3.0, 5.0]), np.array([10.0])], [np.array([1.0, 2.0, 3.0]), np.array([30.0])]
    assert aggregate.mean_gain(x, y, [4.0, 100.0]) == pytest.approx(((4 - 2) / 4 + (10 - 30) / 100) / 2)
    with pytest.raises(PserError, match="same tasks"):
        aggregate.mean_gain(x, y[:1], [4.0])


def test_bad_scores_are_refused_with_the_remedy():
    with pytest.raises(PserError, match="at least one task"):
        aggregate.mean([])
    with pytest.raises(PserError, match="task 1 has none"):
        aggregate.iqm([np.array([1.0]), np.array([])])
    with pytest.raises(PserError, match="task 0 holds NaN"):
        aggregate.median([np.array([np.nan])])
    with pytest.raises(PserError, match="same tasks"):
        aggregate.probability_of_improvement([np.array([1.0])], [])
