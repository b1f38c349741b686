"""Ranks over games, against counting by hand."""

from hypothesis import given
from hypothesis import strategies as st

from pser.analysis.statistics.ranks import mean_ranks, ranks


def test_the_highest_is_first_and_equals_share_their_places():
    assert ranks([5.0, 7.0, 5.0, 1.0]) == [2.5, 1.0, 2.5, 4.0]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_ranks_are_mean_places_in_a_sorted_list(values):
    ordered = sorted(values, reverse=True)
    places = {v: [i + 1 for i, other in enumerate(ordered) if other == v] for v in values}
    assert ranks(values) == [sum(places[v]) / len(places[v]) for v in values]


def test_mean_ranks_count_every_game_alike():
    assert mean_ranks([[1, 2, 3], [100, 50, 0]]) == [2.0, 2.0, 2.0]
