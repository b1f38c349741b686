"""Questions that several studies answer together."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pser.analysis.statistics.comparisons import holm
from pser.analysis.statistics.permutation import permutation_p_value
from pser.learner.settings_json import to_json
from pser.studies import pooled, report
from pser.studies.advice import IF_LEVEL, IF_SHOWN, Advice, what_to_take
from pser.studies.by_mass import WITH_AND_WITHOUT_DECAY, Beside, beside_each_other, caveat, mass_table
from pser.studies.catalogue import NAMES, find_study
from pser.studies.figures import draw_by_mass, draw_pooled
from pser.studies.findings import Findings, in_few_words, in_full, in_short, render, shown_alone
from pser.studies.pooled import (
    DECAY,
    QUESTIONS,
    Question,
    otherwise,
    pooled_note,
    pooled_table,
)
from pser.studies.results import results_of
from pser.studies.study import Arm, Planned
from pser.studies.telling import gain_text, has_interval

from .synthetic import records, small_study


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.asks)
def test_each_names_arms_of_its_studies_and_counts_a_run_once(question):
    named = [(study, arm) for study, *arms in question.pairs for arm in arms]
    assert len(set(named)) == len(named)
    for study, arm in named:
        assert arm in [declared.name for declared in find_study(study).arms]


def test_pairs_with_and_without_decay_differ_in_nothing_else():
    for study, arm, other in WITH_AND_WITHOUT_DECAY:
        declared = find_study(study)
        settings = [
            to_json(declared.settings_of(Planned(declared.games[0], one, 0)))["replay"]
            for one in declared.arms
            if one.name in (arm, other)
        ]
        first, second = ({"eta": 0.0, **one, "rho": 0, "window": 0, "replay": ""} for one in settings)
        shared = first.keys() & second.keys()
        assert "eta" in shared
        assert {key: first[key] for key in shared} == {key: second[key] for key in shared}, (
            study,
            arm,
            other,
        )


ASKED, AGAIN, MINE = "*Does it help?*", "*Again?*", "*Is PSER better?*"
LEVEL = "0.44, would be shown at 0.04."


def found_of(monkeypatch, levels, more):
    """Two studies, one with two arms and one with two pairs, and a question over all of them."""
    first = small_study()
    other = small_study(
        arms=tuple(Arm(name=name, about=name, settings={"replay": "pser"}) for name in ("a", "b", "c", "d")),
        contrasts=(),
    )
    question = Question(
        asks="Does it help?",
        pairs=(("first", "pser", "uniform"), ("other", "a", "b"), ("other", "c", "d")),
        advice=Advice(if_yes="Take it.", if_reverse="Leave it.", if_level="Take either."),
    )
    monkeypatch.setattr(pooled, "QUESTIONS", (question, replace(question, asks="Again?")))
    return {
        "first": results_of(first, records(first, levels)),
        "other": results_of(other, records(other, more)),
    }


def test_all_games_of_all_pairs_are_one_test_corrected_with_the_others(monkeypatch):
    found = found_of(
        monkeypatch, {"pser": [5, 6], "uniform": [1, 2]}, {"a": [3, 4], "b": [1, 2], "c": [1, 2], "d": [3, 4]}
    )
    tested, again = pooled.pooled(found)
    assert (len(tested.games), tested.wins, tested.runs) == (6, 4, 24)
    assert tested.by_game == (1.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    assert tested.probability.value == pytest.approx(4 / 6)
    high, low = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    sides = [high] * 4 + [low] * 2, [low] * 4 + [high] * 2
    assert "| 0.67 | +200% [+150%, +250%] | 1.00 | 0.50 |" in pooled_table(
        [tested]
    )  # over all, in the first study, in the other
    assert tested.p_value == permutation_p_value(*sides, np.random.default_rng(0), permutations=20_000)
    assert [tested.corrected, again.corrected] == list(holm([tested.p_value, again.p_value]))


def test_a_pair_without_runs_is_left_out_and_so_is_a_question(monkeypatch):
    found = found_of(monkeypatch, {}, {"a": [3, 4], "b": [1, 2], "c": [5]})
    assert len(pooled.pooled(found)[0].games) == 2
    without = {"first": found["first"]}
    assert pooled.pooled(without) == []
    none = Findings(without)
    assert pooled_table([]) == in_short(none, "assets") == in_few_words(none, "assets") == ""
    assert "## In short" not in render(none)


def test_runs_measured_otherwise_may_tell_another_story(monkeypatch):
    """A run that starts high and ends low is above another by the whole run, and below it by its last tenth."""
    found = found_of(monkeypatch, {"pser": [5], "uniform": [1]}, {})
    first = found["first"]
    falls = {"frames": [10, 20, 30, 40, 50, 60], "return_count": [1] * 6, "return_mean": [9, 9, 9, 9, 9, 0]}
    changed = {
        path: replace(one, train=falls) if one.arm == "pser" else one for path, one in first.records.items()
    }
    found = {"first": results_of(first.study, changed)}
    assert [tested.probability.value for tested in pooled.pooled(found)] == [0.0, 0.0]
    assert otherwise(found) == {"Does it help?": 1.0, "Again?": 1.0}
    own = replace(first.study, measure=replace(first.study.measure, name="of my own"))
    assert otherwise({"first": results_of(own, changed)}) == {}


def test_pages_have_a_line_a_question(monkeypatch):
    more = {"a": [3, 4], "b": [1, 2], "c": [3, 4], "d": [1, 2]}
    found = Findings(found_of(monkeypatch, {"pser": [5, 6], "uniform": [1, 2]}, more))
    told = pooled_table(found.together, otherwise(found.studies))
    (line,) = [line for line in told.splitlines() if "Does it help?" in line]
    assert re.fullmatch(
        r"\| Does it help\? \| yes \| 1.00 \| \+[^|]*\| 1.00 \| 1.00 \| 1.00 \| 0.000\d* \| 0.\d\d \| 6 of 6 \| 24 \|",
        line,
    )
    for page in (render(found), in_short(found, "there"), in_full(found, "there.md", "there")):
        assert line in page
        assert "findings.png)" in page
        assert "- *Does it help?* 1.00. Take it." in page
    few = in_few_words(found, "there")
    assert line not in few
    assert "](there/findings.png)" in few
    assert "- *Does it help?* 1.00. Take it." in few
    assert "Not finished" not in few


def test_what_whole_studies_have_shown_stands_beside(monkeypatch):
    found = found_of(monkeypatch, {"pser": [5, 6], "uniform": [1, 2]}, {})["first"]
    assert found.whole
    assert shown_alone({"first": found}) == ""  # two seeds on two games: p = 2/36
    study = small_study(seeds=3)
    whole = results_of(study, records(study, {"pser": [5, 6, 7], "uniform": [1, 2, 3]}))
    (line,) = shown_alone({"one": found, "two": whole}).splitlines()
    assert line.startswith("- Is PSER better? Yes: probability 1.00, gain +200% [")
    assert line.endswith("p = 0.005 (`two`). In `one`: probability 1.00, p = 0.056.")
    part = results_of(study, {path: one for path, one in whole.records.items() if "Cart" in path})
    assert shown_alone({"part": part}) == ""
    assert line.partition(" In ")[0] in in_short(Findings({"first": found, "two": whole}), "there")


def test_what_is_shown_by_runs_that_raised_the_question_is_told_without_them_too():
    study = small_study(seeds=4, seen_seeds=1)
    found = results_of(study, records(study, {"pser": [9, 5, 4, 6], "uniform": [2, 1, 2, 5]}))
    fresh = small_study(seeds=3, first_seed=1)
    same = results_of(fresh, {path: one for path, one in found.records.items() if one.seed})
    assert found.unseen == same.tested
    (line,) = shown_alone({"one": found}).splitlines()
    assert line.endswith(
        " Without the runs that raised the question: probability 0.83 [0.50, 1.00], p = 0.075."
    )
    assert "the first seed of arms that it compares had been seen" in report.render(found, [])
    assert report.render(found, []).count("*Is PSER better?* No difference shown: probability 0.83") == 1
    assert "had been seen" not in report.render(same, [])


@pytest.mark.parametrize(
    ("pser", "uniform", "told"),
    [
        ([5, 6, 7], [1, 2, 3], f"{IF_SHOWN}\n\n- {ASKED} 1.00. Take it.\n- {AGAIN} 1.00. Take it."),
        ([1, 2, 3], [5, 6, 7], f"{IF_SHOWN}\n\n- {ASKED} 0.00. Leave it.\n- {AGAIN} 0.00. Leave it."),
        (
            [1, 4, 5],
            [2, 3, 6],
            f"{IF_LEVEL}\n\n- {ASKED} {LEVEL} Take either.\n- {AGAIN} {LEVEL} Take either.",
        ),
        ([5], [1], ""),
    ],
)
def test_what_to_take_follows_from_the_verdict(monkeypatch, pser, uniform, told):
    found = found_of(monkeypatch, {"pser": pser, "uniform": uniform}, {})
    assert what_to_take(pooled.pooled(found)) == told


def test_what_is_shown_is_told_before_what_is_level(monkeypatch):
    level = found_of(monkeypatch, {"pser": [1, 4, 5], "uniform": [2, 3, 6]}, {})
    both = [*pooled.pooled(level), study_with_advice({"pser": [5, 6, 7], "uniform": [1, 2, 3]}).tested[0]]
    told = what_to_take(both)
    assert told == (
        f"{IF_SHOWN}\n\n- {MINE} 1.00. Have it.\n\n"
        f"{IF_LEVEL}\n\n- {ASKED} {LEVEL} Take either.\n- {AGAIN} {LEVEL} Take either."
    )
    silent = replace(both[-1], contrast=replace(both[-1].contrast, advice=None))
    assert what_to_take([silent]) == ""


def study_with_advice(levels):
    """The results of a study of one's own whose comparison says what to take."""
    told = Advice(if_yes="Have it.", if_reverse="Leave it be.", if_level="Have either.")
    study = small_study(seeds=3)
    study = replace(study, contrasts=(replace(study.contrasts[0], advice=told),))
    return results_of(study, records(study, levels))


def test_a_whole_study_decides_what_to_take_and_the_last_of_those_that_ask_the_same():
    ahead, behind = {"pser": [5, 6, 7], "uniform": [1, 2, 3]}, {"pser": [1, 2, 3], "uniform": [5, 6, 7]}
    part = study_with_advice({"pser": [5, 6], "uniform": [1, 2]})
    first, second = study_with_advice(ahead), study_with_advice(behind)
    decided = [
        what_to_take(Findings(dict(zip("abc", found, strict=False))).deciding)
        for found in ([part], [first, part], [first, second])
    ]
    assert decided == [
        "",
        f"{IF_SHOWN}\n\n- {MINE} 1.00. Have it.",
        f"{IF_SHOWN}\n\n- {MINE} 0.00. Leave it be.",
    ]


def test_the_page_of_a_whole_study_says_what_to_take():
    whole = study_with_advice({"pser": [5, 6, 7], "uniform": [1, 2, 3]})
    part = study_with_advice({"pser": [5, 6], "uniform": [1, 2]})
    assert f"{IF_SHOWN}\n\n- {MINE} 1.00. Have it." in report.render(whole, [])
    assert "Have it." not in report.render(part, [])


def advised():
    """Each advice that is given, with the question it follows from."""
    contrasts = [contrast for name in NAMES for contrast in find_study(name).contrasts]
    asked = [question.contrast for question in QUESTIONS] + contrasts
    return {one.asks: one.advice for one in asked if one.advice is not None}


@pytest.mark.parametrize(("asks", "advice"), advised().items())
def test_every_verdict_has_its_advice(asks, advice):
    assert len({advice.after(verdict) for verdict in ("higher", "lower", "no difference shown")}) == 3, asks
    assert advice.after("too few runs") == ""


def test_a_study_that_is_not_whole_is_named(monkeypatch):
    levels = {"pser": [5, 6], "uniform": [1, 2]}
    found = found_of(monkeypatch, levels, {"a": [3, 4], "b": [1, 2]})
    assert "Not finished: `other` (8 of 16 runs)." in pooled_note(found)
    assert "Not finished" not in pooled_note({"first": found["first"]})


def test_a_single_run_of_an_arm_gives_no_interval(monkeypatch):
    levels = {"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7]}
    assert has_interval(pooled.pooled(found_of(monkeypatch, levels, {}))[0])
    assert not has_interval(pooled.pooled(found_of(monkeypatch, levels, {"a": [3], "b": [1]}))[0])


def test_pairs_are_told_by_the_mass_that_decay_holds(monkeypatch, tmp_path):
    levels = {"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7]}
    found = found_of(monkeypatch, levels, {"a": [3, 4], "b": [1, 2], "c": [1], "d": [2]})
    for study, arm, share in (("first", "pser", 0.25), ("other", "a", 0.5)):
        for record in found[study].records.values():
            if record.arm == arm:
                record.train["memory.mass_from_decay"] = [0.0, share]
    pairs = beside_each_other(found, pooled.QUESTIONS[0].pairs)  # of c nobody knows the mass
    first, second = mass_table(pairs).splitlines()[2:]
    assert first == "| `other` | `a` against `b` | 50.0% | 1.00 | +150% [+75%, +225%] | 2 of 2 | 8 |"
    assert re.fullmatch(
        r"\| `first` \| `pser` against `uniform` \| 25.0% \| 0.5\d* \[.*\] \| – \| 0 of 2 \| 16 \|",
        second,
    )
    assert mass_table(beside_each_other({}, pooled.QUESTIONS[0].pairs)) == ""
    assert caveat(pairs) == ""
    drawn = draw_by_mass(pairs, tmp_path, "decay")[1].read_text()
    assert "<!-- a" in drawn
    assert "against b -->" in drawn
    assert "<!-- pser" not in drawn  # nothing was learned there, so there is no gain
    assert "<!-- study other -->" in drawn
    assert "<!-- decay holds 50.0% -->" in drawn


def test_pairs_in_which_decay_holds_next_to_nothing_are_counted():
    (tested,) = study_with_advice({"pser": [1, 2, 3], "uniform": [2, 3, 4]}).tested
    pairs = [
        Beside(pair, share, tested) for pair, share in zip(DECAY.pairs, (0.009, 0.2, 0.003), strict=False)
    ]
    other = Beside(("insertion", "pser-currenttd", "per-eta-currenttd"), 0.001, tested)
    assert caveat([*pairs, other]).startswith(
        "In 2 of the 3 pairs of arms behind *Does backward decay help?*"
    )


def test_the_figure_has_a_line_a_question(monkeypatch, tmp_path):
    more = {"a": [3, 4], "b": [1, 2], "c": [3, 4], "d": [1, 2]}
    found = found_of(monkeypatch, {"pser": [5, 6], "uniform": [1, 2]}, more)
    png, svg = draw_pooled(pooled.pooled(found), tmp_path, "findings")
    assert png.read_bytes().startswith(b"\x89PNG")
    drawn = svg.read_text()
    gain = gain_text(pooled.pooled(found)[0]).partition(" ")[0]
    for text in ("Does it help?", "Again?", "a game of first", "a game of other", f"gain {gain}"):
        assert f"<!-- {text} -->" in drawn
