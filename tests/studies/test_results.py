"""What the records of a study say, and what they must not say."""

import dataclasses

import numpy as np
import pytest

from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.analysis.statistics.permutation import permutation_p_value
from pser.errors import PserError
from pser.studies.declaration import declaration
from pser.studies.report import render
from pser.studies.results import results_of
from pser.studies.study import Arm, Contrast
from pser.studies.telling import gain_text, sentence

from .synthetic import records, small_study


def arms_named(*names):
    """Arms that differ in their names only."""
    return tuple(Arm(name=name, about=name, settings={"replay": "pser"}) for name in names)


def test_a_clean_sweep_of_enough_seeds_is_a_difference_shown():
    study = small_study(seeds=4)
    results = results_of(study, records(study, {"pser": [5, 6, 7, 8], "uniform": [1, 2, 3, 4]}))
    (tested,) = results.tested
    assert tested.probability.value == 1.0
    assert tested.p_value == pytest.approx(
        2 / 70**2
    )  # two sweeps of all ways to deal 4 + 4 runs on two games
    assert tested.verdict == "higher"
    assert (tested.wins, tested.seeds, tested.runs) == (2, 4, 16)
    worse = results_of(study, records(study, {"uniform": [5, 6, 7, 8], "pser": [1, 2, 3, 4]}))
    assert worse.tested[0].verdict == "lower"


def test_one_seed_each_proves_nothing():
    study = small_study(seeds=1)
    (tested,) = results_of(study, records(study, {"pser": [5], "uniform": [1]})).tested
    assert tested.p_value == tested.smallest == 0.5
    assert tested.verdict == "too few runs"


def test_overlapping_runs_show_no_difference():
    study = small_study(seeds=4)
    levels = {"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7]}
    (tested,) = results_of(study, records(study, levels)).tested
    assert tested.verdict == "no difference shown"


def test_p_values_are_corrected_for_the_number_of_contrasts():
    contrasts = tuple(
        Contrast(arm=arm, against=against, asks="?")
        for arm, against in (("pser", "uniform"), ("uniform", "pser"), ("pser", "twin"))
    )
    study = small_study(seeds=3, contrasts=contrasts, arms=arms_named("pser", "uniform", "twin"))
    levels = {"pser": [4, 5, 6], "uniform": [1, 2, 3], "twin": [4, 5, 6]}
    tested = results_of(study, records(study, levels)).tested
    assert [one.p_value for one in tested] == pytest.approx([1 / 200, 1 / 200, 1.0])
    assert [one.corrected for one in tested] == pytest.approx([3 / 200, 3 / 200, 1.0])


def test_several_pairs_of_arms_are_one_test_with_a_stratum_for_each_game_of_each():
    together = Contrast(arm="new", against="old", asks="?", pairs=(("a", "b"), ("c", "d")))
    study = small_study(seeds=2, contrasts=(together,), arms=arms_named("a", "b", "c", "d"))
    levels = {"a": [5, 6], "b": [1, 2], "c": [3, 8], "d": [4, 7]}
    results = results_of(study, records(study, levels))
    (tested,) = results.tested
    sides = [(levels["a"], levels["b"])] * 2 + [(levels["c"], levels["d"])] * 2
    xs, ys = ([np.array(side, float) for side in column] for column in zip(*sides, strict=True))
    assert tested.p_value == permutation_p_value(xs, ys, np.random.default_rng(0))
    assert tested.probability.value == probability_of_improvement(xs, ys) == 0.75
    assert (len(set(tested.games)), tested.runs) == (4, 16)
    told = sentence(tested)
    assert "a run of new scores higher than one of old" in told
    assert "16 runs on 4 pairs of arms and games" in told
    assert "new against old (a and b, c and d, together)" in declaration(study)
    assert "| new against old |" in render(results, [])


def test_an_arm_counts_once_in_a_contrast_and_is_one_of_the_study():
    arms = arms_named("a", "b", "c")
    twice = Contrast(arm="new", against="old", asks="?", pairs=(("a", "b"), ("c", "b")))
    with pytest.raises(PserError, match="names one twice"):
        small_study(arms=arms, contrasts=(twice,))
    unknown = Contrast(arm="new", against="old", asks="?", pairs=(("a", "b"), ("c", "d")))
    with pytest.raises(PserError, match="'d'"):
        small_study(arms=arms, contrasts=(unknown,))
    whole = small_study(arms=arms_named("a", "b", "c", "d"), contrasts=(unknown,))
    assert whole.only(arms=["a", "b"]).contrasts == ()


def test_games_on_which_an_arm_has_no_run_yet_are_not_compared():
    study = small_study()
    found = records(study, {"pser": [2], "uniform": [1]})
    del found["OnlineCliffwalk6-v0/pser/seed-0"]
    (tested,) = results_of(study, found).tested
    assert tested.games == ("gym:CartPole-v1",)


def test_mean_error_and_share_that_took_off():
    study = small_study(seeds=3)
    results = results_of(study, records(study, {"pser": [0.0, 1.0, 2.0]}))
    cell = results.cells["gym:pser/OnlineCliffwalk6-v0", "pser"]
    assert (cell.mean, cell.error) == (1.0, pytest.approx(np.sqrt(1 / 3)))
    assert cell.taken_off.value == pytest.approx(2 / 3)
    assert np.isnan(results.cells["gym:CartPole-v1", "uniform"].mean)


def test_a_gain_is_a_share_of_what_the_best_arm_learned():
    study = small_study(seeds=3, arms=arms_named("pser", "uniform", "other"))
    levels = {"pser": [6.0, 7.0, 8.0], "uniform": [4.0, 5.0, 6.0], "other": [10.0, 10.0, 10.0]}
    found = records(study, levels)
    for one in found.values():  # all begin at 2, but on the second game, where all end where they began
        last = one.train["return_mean"][-1] if "CartPole" in one.env else 2.0
        one.train["return_mean"] = [2.0] * 5 + [last]
        one.train["return_count"] = [1, 1, 1, 1, 1, 1]
    (tested,) = results_of(study, found).tested
    assert tested.gain.value == pytest.approx((7.0 - 5.0) / (10.0 - 2.0))
    assert tested.gain.low < tested.gain.value < tested.gain.high
    assert gain_text(tested).startswith("+25% [+")
    assert len(tested.games) == 2
    late = {path: dataclasses.replace(one) for path, one in found.items()}
    for one in late.values():
        one.train["return_count"] = [0, 1, 1, 1, 1, 1]
        one.train["return_mean"] = [99.0, *one.train["return_mean"][1:]]  # no game ended there
    assert results_of(study, late).tested[0].gain == tested.gain


def test_where_nothing_is_learned_there_is_no_gain():
    study = small_study(seeds=2)
    for levels in ({"pser": [1, 1], "uniform": [1, 1]}, {"pser": [1, 3], "uniform": [1, 2]}):
        (tested,) = results_of(
            study, records(study, levels)
        ).tested  # 2 ± 1, which may well be where all began
        assert tested.gain is None
        assert gain_text(tested) == "–"


def test_a_single_run_has_a_gain_without_an_interval():
    study = small_study(seeds=1)
    (tested,) = results_of(study, records(study, {"pser": [1], "uniform": [5]})).tested
    assert gain_text(tested) == "-200%"


def test_different_processors_are_told_with_the_pairs_they_set_apart():
    study = small_study()
    found = records(study, {"pser": [1, 2], "uniform": [1, 2]})
    (path,) = [one for one in found if "CartPole" in one and one.endswith("pser/seed-1")]
    found[path] = dataclasses.replace(found[path], machine={"processor": "other", "cores": 2})
    notes = " ".join(results_of(study, found).notes)
    assert "2 kinds of processor (other, some); 1 of 4 pairs" in notes
    assert "versions" not in notes


def test_different_commits_are_told():
    study = small_study()
    found = records(study, {"pser": [1, 2]}) | {
        path: dataclasses.replace(one, commit="fedcba9876543210-dirty")
        for path, one in records(study, {"uniform": [1, 2]}).items()
    }
    notes = " ".join(results_of(study, found).notes)
    assert "2 versions of the program (0123456789, fedcba9876)" in notes
    assert "4 of 4 pairs" in notes
    assert "processor" not in notes
    assert "not committed" in notes
    assert results_of(study, records(study, {"pser": [1]})).notes == ()


def test_records_made_with_other_settings_are_told():
    study = small_study()
    found = records(study, {"pser": [1, 2]})
    changed = dataclasses.replace(study, settings={**study.settings, "capacity": 200})
    (note,) = results_of(changed, found).notes
    assert note == "4 runs had other settings than are declared now: capacity of pser was 100, now 200"


def test_runs_beyond_the_declared_are_told_and_do_not_stand_for_those_that_lack():
    study = small_study(seeds=2)
    whole = results_of(study, records(study, {"pser": [1, 2], "uniform": [3, 4]}))
    assert (whole.done, whole.added, whole.whole) == (8, 0, True)
    more = results_of(study, records(study, {"pser": [1, 2, 3, 4]}))
    assert (more.done, more.added, more.whole) == (4, 4, False)
    assert "4 of 8 runs so far and 4 more than are declared" in render(more, [])
    (note,) = more.notes
    assert note.startswith("4 runs more than are declared, and the tests count them")


def test_contrasts_without_runs_count_in_the_correction():
    contrasts = tuple(
        Contrast(arm="pser", against=against, asks=against) for against in ("uniform", "twin", "other")
    )
    study = small_study(seeds=3, contrasts=contrasts, arms=arms_named("pser", "uniform", "twin", "other"))
    (tested,) = results_of(study, records(study, {"pser": [4, 5, 6], "uniform": [1, 2, 3]})).tested
    assert tested.corrected == pytest.approx(3 * tested.p_value)
    assert tested.together == 3


def test_what_the_records_cannot_tell_stands_first_among_the_notes():
    study = small_study(seeds=1, remarks=("a first run was not kept",))
    assert results_of(study, records(study, {"pser": [1]})).notes == ("a first run was not kept",)


def test_runs_of_two_arms_that_are_the_same_are_told():
    study = small_study()
    apart = records(study, {"pser": [1, 2], "uniform": [3, 2]})  # the second seed is the same on both games
    (note,) = results_of(study, apart).notes
    assert note.startswith(
        "2 of 4 runs of `pser` learned step for step what the run of `uniform` with the same seed"
    )
    for one in apart.values():
        one.train["loss"] = [0.5] * 6 if one.arm == "pser" else [0.5] * 5 + [0.6]
    assert results_of(study, apart).notes == ()
    assert results_of(study, records(study, {"pser": [1], "uniform": [0, 1]})).notes == ()


def test_a_page_says_how_much_of_the_study_is_there():
    study = small_study(seeds=3)
    page = render(results_of(study, records(study, {"pser": [1.0], "uniform": [2.0]})), [])
    assert "4 of 12 runs so far, 4.0 core-hours." in page
    assert "| Is PSER better? | pser against uniform | too few runs |" in page
    whole = render(results_of(study, records(study, {"pser": [1.0] * 3, "uniform": [2.0] * 3})), [])
    assert "All 12 runs, 12.0 core-hours." in whole
    empty = render(results_of(study, {}), [])
    assert "0 of 12 runs so far" in empty
    assert "no runs yet" in empty
