"""What the study of sharpness says of made-up runs."""

import pytest

from pser.studies.results import results_of
from pser.studies.sharpness import NAMES, SETTINGS, STUDY, exponent, name_of, tell

from .synthetic import records


def told(level):
    """What it says if an arm's three runs are spread a little around `level(replay, exponent)`."""
    levels = {
        name_of(replay, *setting): [level(replay, exponent(*setting)) + 0.001 * seed for seed in range(3)]
        for replay in NAMES
        for setting in SETTINGS
    }
    return tell(results_of(STUDY, records(STUDY, levels)))


def test_the_loss_is_twice_as_sharp_as_the_td_error():
    assert [exponent("td", 0.8), exponent("loss", 0.4), exponent("loss", 0.6)] == [0.8, 0.8, 1.2]


def test_a_rise_with_sharpness_is_shown_and_told_apart_from_the_strategy():
    sentence = told(lambda replay, sharpness: sharpness).sentence
    assert "With PER, the sharper of two runs scores higher with probability 1.00 (shown" in sentence
    assert (
        "with PSER as published, the sharper of two runs scores higher with probability 1.00 (shown"
        in sentence
    )
    assert "one of PER with probability 0.50 (not shown, p = 1)" in sentence


def test_a_better_strategy_is_shown_and_told_apart_from_sharpness():
    sentence = told(lambda replay, sharpness: 2.0 if replay == "pser" else 1.0).sentence
    assert "With PER, the sharper of two runs scores higher with probability 0.50 (not shown" in sentence
    assert "one of PER with probability 1.00 (shown" in sentence


def test_a_fall_is_shown_as_a_small_probability():
    assert "with probability 0.00 (shown" in told(lambda replay, sharpness: -sharpness).sentence


def test_means_stand_in_order_of_sharpness():
    rows = told(lambda replay, sharpness: sharpness).details.splitlines()[2:]
    assert [row.split("|δ\\|^")[1].split(" ")[0] for row in rows] == [
        "0.4",
        "0.6",
        "0.8",
        "0.8",
        "1.2",
        "1.6",
    ]
    assert rows[0].endswith("| 0.401 (3) | 0.401 (3) | 0.401 (3) | 0.401 (3) |")


@pytest.mark.parametrize("levels", [{}, {"uniform": [1.0]}, {"per-td-0.4": [1.0]}])
def test_without_two_arms_nothing_is_known(levels):
    assert tell(results_of(STUDY, records(STUDY, levels))).sentence.startswith("Not known yet")
