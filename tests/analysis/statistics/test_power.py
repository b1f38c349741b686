"""What a number of runs can show, against the permutation test itself."""

from statistics import NormalDist

import numpy as np
import pytest

from pser.analysis.statistics.permutation import permutation_p_value
from pser.analysis.statistics.power import seeds_needed, smallest_shown
from pser.errors import PserError

TWO_GAMES = ((3, 3), (3, 3))


def share_shown(counts, probability, level, studies=600):
    """How many studies of a true difference the permutation test shows, counted."""
    rng = np.random.default_rng(1)
    shift = NormalDist().inv_cdf(probability) * 2**0.5
    shown = 0
    for _ in range(studies):
        x = [rng.normal(shift, 1, left) for left, _ in counts]
        y = [rng.normal(0, 1, right) for _, right in counts]
        shown += permutation_p_value(x, y, rng, permutations=1000) < level
    return shown / studies


@pytest.mark.parametrize(
    ("counts", "level"), [(TWO_GAMES, 0.05), (((4, 2), (2, 3)), 0.05), (((6, 5),), 0.01)]
)
def test_a_difference_of_that_size_is_shown_in_four_studies_of_five(counts, level):
    found = smallest_shown(counts, level)
    assert share_shown(counts, found, level) == pytest.approx(0.8, abs=0.05)
    assert share_shown(counts, 1 - found, level) == pytest.approx(0.8, abs=0.05)


def test_what_even_a_clean_sweep_would_not_show_has_no_size():
    assert smallest_shown(((3, 3),), 0.05) is None  # a clean sweep: p = 0.1
    assert smallest_shown(((3, 3),), 0.11) is not None
    assert smallest_shown(TWO_GAMES, 1 / 20**2) is None  # p = 2 / 20² at best


def test_more_runs_more_games_and_fewer_comparisons_show_smaller_differences():
    base = smallest_shown(TWO_GAMES, 0.05)
    assert smallest_shown(((5, 5), (5, 5)), 0.05) < base - 0.05
    assert smallest_shown((*TWO_GAMES, (3, 3)), 0.05) < base - 0.03
    assert smallest_shown(TWO_GAMES, 0.05 / 5) > base + 0.01
    assert smallest_shown(TWO_GAMES, 0.05, 0.5) < base - 0.05


@pytest.mark.parametrize("games", [1, 2, 5])
@pytest.mark.parametrize(("runs", "level"), [(5, 0.05), (10, 0.05), (10, 0.005)])
def test_as_many_seeds_are_needed_as_show_it(games, runs, level):
    shown = smallest_shown(((runs, runs),) * games, level)
    assert abs(seeds_needed(shown, games, level) - runs) <= 1
    assert seeds_needed(1 - shown, games, level) == seeds_needed(shown, games, level)


def test_a_small_difference_needs_many_seeds_and_none_cannot_be_shown():
    assert seeds_needed(0.51, 5, 0.05) > 1000 > seeds_needed(0.52, 5, 0.05) > 100
    assert seeds_needed(1.0, 20, 0.05) == 1
    for probability, games in ((0.5, 3), (1.1, 3), (0.7, 0)):
        with pytest.raises(PserError, match="to be shown"):
            seeds_needed(probability, games, 0.05)


@pytest.mark.parametrize(
    ("counts", "level", "share"),
    [((), 0.05, 0.8), (((3, 0),), 0.05, 0.8), (TWO_GAMES, 0.0, 0.8), (TWO_GAMES, 0.05, 1.0)],
)
def test_nonsense_is_refused(counts, level, share):
    with pytest.raises(PserError):
        smallest_shown(counts, level, share)
