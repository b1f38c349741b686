"""Mean ranks of a study's arms, against a plain count."""

import itertools

import numpy as np
import pytest

from pser.studies.report import render
from pser.studies.results import results_of
from pser.studies.standing import best_told, standing_table, standings
from pser.studies.study import Arm

from .synthetic import records, small_study

ARMS = tuple(
    Arm(name=name, about=name, settings={"replay": replay})
    for name, replay in (("uniform", "uniform"), ("per", "per"), ("pser", "pser"))
)


def of(levels, arms=ARMS, **changes):
    study = small_study(arms=arms, **changes)
    return results_of(study, records(study, levels))


def test_a_clean_order_is_certain():
    found = standings(of({"uniform": [1, 1], "per": [3, 3], "pser": [2, 2]}))
    assert [(one.arm.name, one.rank.value, one.first) for one in found] == [
        ("per", 1.0, 1.0),
        ("pser", 2.0, 0.0),
        ("uniform", 3.0, 0.0),
    ]
    assert all(one.rank.collapsed for one in found)


def test_arms_that_tie_share_the_first_place():
    found = standings(of({"uniform": [1, 1], "per": [3, 3], "pser": [3, 3]}))
    assert {one.arm.name: (one.rank.value, one.first) for one in found} == {
        "per": (1.5, 0.5),
        "pser": (1.5, 0.5),
        "uniform": (3.0, 0.0),
    }


def test_the_share_of_firsts_is_that_of_all_draws():
    levels = {"uniform": [0.0, 5.0, 1.1], "per": [1.0, 4.0, 2.2], "pser": [2.0, 2.6, 2.4]}
    # On one game, every way to draw two of the three runs of each arm with replacement, counted by hand.
    firsts = dict.fromkeys(levels, 0.0)
    draws = list(itertools.product(*(itertools.product(values, repeat=2) for values in levels.values())))
    for draw in draws:
        means = [sum(pair) / 2 for pair in draw]
        best = [name for name, mean in zip(levels, means, strict=True) if mean == max(means)]
        for name in best:
            firsts[name] += 1 / len(best) / len(draws)
    one_game = small_study(arms=ARMS).games[:1]
    found = {one.arm.name: one.first for one in standings(of(levels, games=one_game, seeds=3))}
    assert sum(found.values()) == pytest.approx(1.0)
    for name, share in firsts.items():
        assert found[name] == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 2000))


@pytest.mark.parametrize(
    "results",
    [
        of({"uniform": [1], "per": [3, 3], "pser": [2, 2]}),  # a run is missing
        of({"uniform": [1, 2], "pser": [2, 3]}, arms=ARMS[::2]),  # two arms: the test says it all
        of({"uniform": [1, 1], "per": [3, 3], "pser": [2, 2]}, contrasts=()),  # nothing is compared
    ],
)
def test_there_are_no_standings(results):
    assert standings(results) == []
    assert (standing_table(results), best_told(results)) == ("", "")
    assert "Which ranks highest" not in render(results, [])


def test_the_best_are_told():
    results = of({"uniform": [1, 1], "per": [3, 3], "pser": [3, 3]})
    assert best_told(results) == (
        "by mean rank over 2 games, the best may be `per` (first in 50% of draws), `pser` (first in 50% of draws); "
        "each of the others in under 5%."
    )
    assert "| per | 1.5 [1.5, 1.5] | 50% |" in render(results, [])
