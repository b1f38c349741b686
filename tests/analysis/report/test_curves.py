import numpy as np
import pytest

from pser.analysis.report.curves import moving_average, on_frames, over_seeds, shared_frames, smoothing_window
from pser.analysis.report.runs import Series
from pser.errors import PserError


def line(frames, values):
    return Series(np.array(frames, dtype=float), np.array(values, dtype=float))


def named(seeds):
    return {f"seed-{number}": points for number, points in enumerate(seeds)}


def test_default_window_is_the_papers_10_of_200_million_frames():
    assert smoothing_window([200e6]) == 10e6
    assert smoothing_window([500_000, 400_000]) == 25_000
    assert smoothing_window([200e6], 3e6) == 3e6
    with pytest.raises(PserError, match="not negative"):
        smoothing_window([1.0], -1)


def test_moving_average_is_the_mean_of_the_trailing_window():
    rng = np.random.default_rng(0)
    frames = np.cumsum(rng.integers(1, 50, size=60)).astype(float)
    points = Series(frames, rng.normal(size=60))
    window = 100.0
    expected = [points.values[(frames > f - window) & (frames <= f)].mean() for f in frames]
    np.testing.assert_allclose(moving_average(points, window).values, expected)


def test_window_of_zero_or_below_the_spacing_changes_nothing():
    points = line([10, 20, 30], [1.0, 5.0, 2.0])
    for window in (0.0, 10.0):
        np.testing.assert_array_equal(moving_average(points, window).values, points.values)
    assert len(moving_average(line([], []), 5.0)) == 0


def test_shared_frames_are_the_union_thinned_evenly_with_both_ends():
    assert shared_frames([line([1, 3], [0, 0]), line([2, 3], [0, 0]), line([], [])]).tolist() == [1, 2, 3]
    many = shared_frames([line(range(5000), np.zeros(5000))], max_points=100)
    assert len(many) == 100
    assert many[0] == 0
    assert many[-1] == 4999
    assert len(shared_frames([])) == 0


def test_curve_is_linear_inside_its_range_and_missing_outside():
    values = on_frames(line([10, 20], [1.0, 3.0]), np.array([5.0, 10.0, 15.0, 20.0, 25.0]))
    np.testing.assert_array_equal(values, [np.nan, 1.0, 2.0, 3.0, np.nan])


def test_band_spans_the_lowest_and_highest_seed():
    frames = np.array([1.0, 2.0])
    curve = over_seeds("x", named([line([1, 2], [0, 4]), line([1, 2], [2, 8]), line([1, 2], [7, 6])]), frames)
    np.testing.assert_allclose(curve.mean, [3.0, 6.0])
    np.testing.assert_allclose(curve.low, [0.0, 4.0])
    np.testing.assert_allclose(curve.high, [7.0, 8.0])
    assert curve.seeds == 3


def test_seed_that_ends_early_leaves_the_others_and_is_counted():
    frames = np.array([1.0, 2.0, 3.0])
    curve = over_seeds("x", named([line([1, 2, 3], [1, 1, 1]), line([1, 2], [3, 3])]), frames)
    np.testing.assert_allclose(curve.mean, [2.0, 2.0, 1.0])
    assert curve.count.tolist() == [2, 2, 1]


def test_no_seed_with_values_gives_no_curve_and_unreached_frames_are_missing():
    assert over_seeds("x", named([line([], [])]), np.array([1.0])) is None
    curve = over_seeds("x", named([line([1, 2], [1, 1])]), np.array([0.0, 1.0, 5.0]))
    np.testing.assert_array_equal(curve.mean, [np.nan, 1.0, np.nan])
    assert curve.count.tolist() == [0, 1, 0]
