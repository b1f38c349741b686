import numpy as np
import pytest

from pser.analysis.statistics import scores


def test_human_normalised_is_0_for_random_and_1_for_human_play():
    np.testing.assert_allclose(scores.human_normalised([10.0, 30.0, 50.0], 10.0, 30.0), [0.0, 1.0, 2.0])


def test_human_normalised_keeps_its_direction_when_human_is_below_random():
    assert scores.human_normalised(12.0, 10.0, 8.0) == pytest.approx(1.0)


def test_percent_change_turns_round_with_a_negative_base_as_printed():
    assert scores.percent_change(0.0, -8.8) == pytest.approx(-100.0)
    assert scores.signed_percent_change(0.0, -8.8) == pytest.approx(100.0)


def test_percent_change_of_nothing_is_undefined_and_warns_of_nothing():
    assert np.isnan(scores.percent_change(0.0, 0.0))
    assert np.isnan(scores.signed_percent_change(5.0, 0.0))
    assert np.isnan(scores.symmetric_difference(0.0, 0.0))


def test_percent_change_doubles_to_100():
    np.testing.assert_allclose(scores.percent_change([6.0, 1.5], 3.0), [100.0, -50.0])


def test_symmetric_difference_is_antisymmetric_and_bounded():
    a, b = np.array([1.0, -3.0, 0.0, 7.0]), np.array([2.0, 5.0, 4.0, 0.0])
    forward = scores.symmetric_difference(a, b)
    np.testing.assert_allclose(forward, -scores.symmetric_difference(b, a))
    assert np.all(np.abs(forward) <= 200.0)


def test_baseline_difference_divides_by_the_better_of_human_and_base():
    assert scores.baseline_difference(30.0, 20.0, 0.0, 10.0) == pytest.approx(50.0)
    assert scores.baseline_difference(30.0, 20.0, 0.0, 40.0) == pytest.approx(25.0)


def test_min_max_normalised_spans_0_to_1_and_is_a_half_without_a_span():
    np.testing.assert_allclose(scores.min_max_normalised([2.0, 3.0, 6.0], 2.0, 6.0), [0.0, 0.25, 1.0])
    np.testing.assert_array_equal(scores.min_max_normalised([4.0, np.nan], 4.0, 4.0), [0.5, np.nan])
