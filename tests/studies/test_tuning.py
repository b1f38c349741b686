"""Coordinate descent and random search: what they try, what they choose, how sure they are."""

import dataclasses
import itertools

import pytest

from pser.cli import main
from pser.studies.results import results_of
from pser.studies.study import Game
from pser.studies.tune import STUDY
from pser.studies.tuning import (
    PAPER_VALUES,
    Tuning,
    all_choices,
    arm_of,
    best_of,
    budget,
    chosen_again,
    descend,
    random_choices,
    stage_score,
    tell,
)

from .synthetic import record

GAMES = ("one", "two")


def scores_by(function, choices):
    return {choice: {game: [function(choice)] for game in GAMES} for choice in choices}


def test_the_descent_fixes_one_coordinate_after_the_other():
    def height(choice):
        window, rho, eta = choice
        return -abs(window - 10) - 10 * abs(rho - 0.8) - 10 * abs(eta - 0.3)

    scores = scores_by(height, all_choices(PAPER_VALUES))
    tried, chosen = descend(PAPER_VALUES, (5, 0.4, 0.0), scores)
    assert chosen == (10, 0.8, 0.3)
    expected = [(w, 0.4, 0.0) for w in (5, 10, 20)] + [(10, r, 0.0) for r in (0.65, 0.8)]
    assert tried == expected + [(10, 0.8, e) for e in (0.3, 0.5, 0.7)]
    assert len(tried) == budget(PAPER_VALUES) == 8


def test_the_descent_misses_what_only_both_coordinates_together_give():
    values = {"a": (0, 1), "b": (0, 1)}
    scores = scores_by(lambda choice: 2.0 if choice == (1, 1) else -sum(choice), all_choices(values))
    assert descend(values, (0, 0), scores)[1] == (0, 0)
    assert best_of(scores, all_choices(values)) == (1, 1)


def test_the_descent_waits_for_the_runs_it_needs():
    tried, chosen = descend(PAPER_VALUES, (5, 0.4, 0.0), {})
    assert tried == [(5, 0.4, 0.0), (10, 0.4, 0.0), (20, 0.4, 0.0)]
    assert chosen is None


def test_every_game_counts_alike_in_a_stage():
    scores = {
        (0,): {"one": [0.0], "two": [1000.0]},
        (1,): {"one": [1.0], "two": [0.0]},
        (2,): {"one": [0.9], "two": [900]},
    }
    assert stage_score(scores, list(scores)) == pytest.approx({(0,): 0.5, (1,): 0.5, (2,): 0.9})


def test_the_random_search_draws_different_settings_of_the_grid():
    drawn = random_choices(PAPER_VALUES, 8, seed=0)
    assert len(set(drawn)) == 8
    assert set(drawn) <= set(all_choices(PAPER_VALUES))
    assert drawn == random_choices(PAPER_VALUES, 8, seed=0) != random_choices(PAPER_VALUES, 8, seed=1)


def made(study, function):
    """Records of every setting, seeds a little apart."""
    found = {}
    for choice, game, seed in itertools.product(all_choices(study.values), study.games, range(study.seeds)):
        path, one = record(study, game, arm_of(choice), seed, function(choice) + 0.001 * seed)
        found[path] = one
    return found


def test_the_study_asks_for_runs_until_both_searches_have_chosen():
    study = dataclasses.replace(STUDY, games=(Game(env="gym:CartPole-v1"),), settings={})

    def height(choice):
        return choice[0] + 100 * choice[1] + choice[2]

    everything, kept = made(study, height), {}
    for _ in range(10):
        missing = [run.path for run in study.runs(kept) if run.path not in kept]
        if not missing:
            break
        kept |= {path: everything[path] for path in missing}
    asked = {run.arm.name for run in study.runs(kept)}
    drawn = {arm_of(choice).name for choice in random_choices(study.values, 8, study.search_seed)}
    descended = {arm_of(choice).name for choice in descend(study.values, study.start, study.scores(kept))[0]}
    assert asked == drawn | descended
    assert len(kept) == 2 * len(asked)
    told = tell(results_of(study, kept))
    assert "coordinate descent chose window = 20, rho = 0.8, eta = 0.7, 100%" in told.sentence.lower()
    assert "random search of as many settings chose" in told.sentence
    assert len(told.details.splitlines()) == 4


def test_a_choice_by_luck_is_called_unsure():
    study = dataclasses.replace(STUDY, games=(Game(env="gym:CartPole-v1"),), settings={})
    found = made(study, lambda choice: 1.0)
    for number, one in enumerate(found.values()):  # noise alone
        one.train["return_mean"] = [float(number * 7919 % 13)] * 6
    told = tell(results_of(study, found))
    shares = [int(word.strip("%(),;.")) for word in told.sentence.split() if "%" in word]
    assert len(shares) == 2
    assert max(shares) < 95


def test_the_tuning_of_a_tiny_game_runs_and_reports(tmp_path, capsys):
    flags = [
        "--games",
        "gym:CartPole-v1",
        "--window",
        "5",
        "--rho",
        "0.4",
        "--eta",
        "0",
        "0.7",
        "--seeds",
        "1",
    ]
    assert main(["tune", *flags, "--frames", "1200", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "oordinate descent chose window = 5, rho = 0.4" in printed
    assert (tmp_path / "records" / "README.md").exists()
    assert isinstance(STUDY, Tuning)


def test_a_search_without_values_is_refused(tmp_path, capsys):
    assert main(["tune", "--games", "gym:CartPole-v1", "--out", str(tmp_path), "--seeds", "0"]) == 2
    assert "seeds must be at least 1" in capsys.readouterr().err


def test_how_sure_a_choice_is_counts_all_draws_of_one_seed_less():
    scores = {(0,): {"one": [1.0, 4.0, 6.0]}, (1,): {"one": [2.0, 3.0, 5.0]}}
    pairs = [list(itertools.product(by_game["one"], repeat=2)) for by_game in scores.values()]
    wins = [sum(x) >= sum(y) for x, y in itertools.product(*pairs)]  # of equals the first is chosen
    found = chosen_again(scores, lambda drawn: best_of(drawn, [(0,), (1,)]), (0,))
    assert found == pytest.approx(sum(wins) / len(wins), abs=0.05)
