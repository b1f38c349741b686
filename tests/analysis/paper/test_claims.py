import json
from dataclasses import replace

import numpy as np
import pytest

from pser.analysis.paper.claims import check_claims
from pser.analysis.paper.recompute import analyse
from pser.analysis.paper.text import paper_json, paper_markdown, unsupported
from pser.analysis.published import paper_scores


@pytest.fixture(scope="module")
def numbers():
    return analyse(resamples=4000)


@pytest.fixture(scope="module")
def claims(numbers):
    return {claim.key: claim for claim in check_claims(numbers)}


def test_headline_numbers_of_the_paper_are_reproduced(numbers):
    found = {name: (a.pser.value, a.per.value) for name, a in numbers.aggregates.items()}
    assert found["median"] == pytest.approx((108.5, 87.5), abs=0.05)
    assert found["mean"] == pytest.approx((831.9, 606.9), abs=0.05)


def test_wins_ties_and_losses_are_40_3_17(numbers):
    count = numbers.all_games
    assert (count.wins, count.ties, count.losses) == (40, 3, 17)


def test_stated_numbers_get_the_verdict_holds(claims):
    for key in ("pser-median", "pser-mean", "per-median", "per-mean", "wins", "human-games", "bold", "range"):
        assert claims[key].verdict == "holds", key


def test_sentences_the_table_contradicts_get_the_verdict_does_not_hold(claims):
    for key in (
        "beyond-100",
        "percent-change-sign",
        "percent-change-defined",
        "table-rows",
        "asteroids-random",
    ):
        assert claims[key].verdict == "does not hold", key


def test_no_reading_of_relative_difference_gives_8_and_3(numbers):
    counts = {reading.name: (len(reading.pser_games), len(reading.per_games)) for reading in numbers.readings}
    assert counts["difference of human-normalised scores"] == (12, 4)
    assert counts["percent change of raw scores"] == (10, 1)
    assert counts["symmetric relative difference of human-normalised scores"] == (9, 3)
    assert (8, 3) not in counts.values()


def test_significance_is_claimed_in_part_because_the_medians_interval_holds_zero(numbers, claims):
    assert not numbers.aggregates["median"].difference.excludes(0.0)
    assert numbers.aggregates["IQM"].difference.excludes(0.0)
    assert numbers.sign_test_all == pytest.approx(0.0032, abs=1e-4)
    assert claims["significant"].verdict == "holds only in part"


def test_two_games_carry_most_of_the_means_gain(numbers):
    first, second = numbers.influence[:2]
    assert (first.game, second.game) == ("VideoPinball", "DemonAttack")
    assert first.share_of_gain + second.share_of_gain == pytest.approx(0.85, abs=0.005)
    assert sum(i.share_of_gain for i in numbers.influence) == pytest.approx(1.0)
    rest = [
        row.pser_normalised for row in numbers.games if row.human is not None and row.game != "VideoPinball"
    ]
    assert first.pser_mean_without == pytest.approx(np.mean(rest))


def test_median_game_of_pser_is_one_that_per_wins(numbers):
    game = next(row for row in numbers.games if row.game == numbers.median_games["PSER"])
    assert game.pser_normalised == pytest.approx(numbers.aggregates["median"].pser.value)
    assert game.winner == "PER"


def test_printed_percent_change_reverses_pitfall_and_skiing_only(numbers):
    reversed_games = {
        row.game
        for row in numbers.games
        if row.percent_change is not None and (row.percent_change > 0) != (row.pser > row.per)
    }
    assert reversed_games == {"Pitfall", "Skiing"}
    undefined = {row.game for row in numbers.games if row.percent_change is None}
    assert undefined == {"Freeway", "MontezumaRevenge"}


def test_verdicts_follow_the_numbers(numbers):
    one_more_win = replace(numbers.all_games, wins=41, losses=16)
    claims = {claim.key: claim for claim in check_claims(replace(numbers, all_games=one_more_win))}
    assert claims["wins"].verdict == "does not hold"


def test_intervals_contain_their_value_and_depend_on_the_seed_alone(numbers):
    for a in numbers.aggregates.values():
        for estimate in (a.pser, a.per, a.difference):
            assert estimate.low <= estimate.value <= estimate.high
    again = analyse(resamples=4000)
    assert again == numbers
    assert analyse(resamples=4000, seed=1).aggregates != numbers.aggregates


def test_json_holds_every_game_and_claim_and_no_nan(numbers):
    claims = check_claims(numbers)
    document = json.loads(paper_json(numbers, claims), parse_constant=pytest.fail)
    assert len(document["games"]) == 60
    assert len(document["claims"]) == len(claims)
    assert document["aggregates"]["mean"]["pser"]["value"] == pytest.approx(831.9, abs=0.05)


def test_markdown_names_each_unsupported_sentence_and_each_game(numbers):
    claims = check_claims(numbers)
    text = paper_markdown(numbers, claims)
    opening = text[text.index("## What the table does not support") : text.index("## Every statement")]
    for claim in unsupported(claims):
        assert claim.says in opening
    for row in paper_scores():
        assert f"| {row.game} |" in text
