import numpy as np
import pytest
from scipy.stats import binomtest

from pser.analysis.statistics.influence import Tally, leave_one_out_means, shares_of_mean, sign_test, tally


def test_tally_counts_wins_ties_and_losses():
    found = tally(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 5.0, 3.0]))
    assert found == Tally(wins=2, ties=1, losses=1)


@pytest.mark.parametrize(("wins", "losses"), [(40, 17), (37, 15), (3, 9), (5, 5), (1, 0)])
def test_sign_test_agrees_with_the_exact_binomial_test(wins, losses):
    expected = binomtest(wins, wins + losses).pvalue
    assert sign_test(Tally(wins=wins, ties=7, losses=losses)) == pytest.approx(expected)


def test_sign_test_without_an_untied_game_says_nothing():
    assert sign_test(Tally(wins=0, ties=4, losses=0)) == 1.0


def test_leave_one_out_means_are_the_means_of_the_rest():
    values = np.array([1.0, 5.0, 9.0])
    np.testing.assert_allclose(leave_one_out_means(values), [7.0, 5.0, 3.0])


def test_shares_of_mean_sum_to_1_and_keep_their_sign():
    shares = shares_of_mean(np.array([3.0, -1.0, 2.0]))
    np.testing.assert_allclose(shares, [0.75, -0.25, 0.5])
