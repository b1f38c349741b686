import numpy as np
import pytest

from pser.analysis.statistics.shares import share_above, share_interval, share_p_value
from pser.errors import PserError

stats = pytest.importorskip("scipy.stats", reason="the comparison needs scipy")


@pytest.mark.parametrize("runs", [1, 3, 5, 10, 30])
def test_interval_is_that_of_clopper_and_pearson(runs):
    for hits in range(runs + 1):
        found = share_interval(hits, runs)
        expected = stats.binomtest(hits, runs).proportion_ci(0.95, method="exact")
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert found.value == hits / runs


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_interval_holds_the_true_share_at_least_as_often_as_it_says(runs):
    intervals = [share_interval(hits, runs) for hits in range(runs + 1)]
    for share in np.linspace(0.001, 0.999, 200):
        chances = stats.binom.pmf(np.arange(runs + 1), runs, share)
        covered = sum(p for p, i in zip(chances, intervals, strict=True) if i.low <= share <= i.high)
        assert covered >= 0.95


def test_two_shares_are_compared_by_fishers_exact_test():
    for x in range(6):
        for y in range(11):
            expected = stats.fisher_exact([[x, 5 - x], [y, 10 - y]]).pvalue
            assert share_p_value(x, 5, y, 10) == pytest.approx(expected)


def test_run_takes_off_if_it_ends_above_the_threshold():
    found = share_above(np.array([0.1, 5.0, 9.0, 1.0]), 1.0)
    assert found.value == 0.5
    assert found.low < 0.5 < found.high


def test_impossible_counts_are_refused():
    for hits, runs in ((4, 3), (-1, 3), (0, 0)):
        with pytest.raises(PserError, match="at least one run"):
            share_interval(hits, runs)
        with pytest.raises(PserError, match="at least one run"):
            share_p_value(1, 2, hits, runs)
    with pytest.raises(PserError, match="confidence"):
        share_interval(1, 3, confidence=1.0)
