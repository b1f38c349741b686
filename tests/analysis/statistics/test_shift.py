from itertools import combinations

import numpy as np
import pytest

from pser.analysis.statistics.permutation import permutation_p_value
from pser.analysis.statistics.shift import shift, shift_interval, win_counts
from pser.errors import PserError


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 3), (4, 2), (5, 5)])
def test_wins_are_counted_as_all_arrangements_written_out(n, m):
    counts = np.zeros(n * m + 1)
    for ranks in combinations(range(n + m), n):
        others = [rank for rank in range(n + m) if rank not in ranks]
        counts[sum(a > b for a in ranks for b in others)] += 1
    np.testing.assert_array_equal(win_counts(n, m), counts)


def test_shift_is_the_median_of_all_differences():
    assert shift(np.array([1.0, 4.0]), np.array([0.0, 1.0])) == pytest.approx(2.0)


def test_three_seeds_each_allow_no_interval_at_95_percent_and_four_do():
    assert shift_interval(np.array([7.0, 8.0, 9.0]), np.array([1.0, 2.0, 3.0])) is None
    found = shift_interval(np.array([7.0, 8.0, 9.0, 10.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert (found.value, found.low, found.high) == (6.0, 3.0, 9.0)


@pytest.mark.parametrize("seeds", [4, 5, 7])
def test_interval_leaves_out_zero_exactly_where_the_test_finds_a_difference(seeds):
    rng = np.random.default_rng(seeds)
    found = {True: 0, False: 0}
    for _ in range(60):
        x, y = rng.normal(1.3, 1, seeds), rng.normal(0, 1, seeds)
        outside = shift_interval(x, y).excludes(0.0)
        found[outside] += 1
        assert outside == (permutation_p_value([x], [y], rng) <= 0.05)
    assert min(found.values()) > 5  # both cases were met


def test_interval_moves_with_the_runs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 6), rng.normal(0, 1, 6)
    one, other = shift_interval(x, y), shift_interval(x + 3.0, y)
    assert (other.value, other.low, other.high) == pytest.approx((one.value + 3, one.low + 3, one.high + 3))


def test_side_without_runs_is_refused():
    with pytest.raises(PserError, match="at least one run; got 0 and 2"):
        shift(np.empty(0), np.arange(2.0))
    with pytest.raises(PserError, match="confidence"):
        shift_interval(np.arange(3.0), np.arange(3.0), confidence=2.0)
