"""The page of findings: what it says follows from the records, and the pages in the repository are up to date."""

import re
from pathlib import Path

import pytest

from pser.studies import check, check_again, epsilon, rainbow, report
from pser.studies.findings import (
    END,
    PAGES,
    RECORDS,
    START,
    Findings,
    in_full,
    put_between_marks,
    render,
    write_findings,
)
from pser.studies.results import results_of
from pser.studies.sources import shares_by_arm
from pser.studies.telling import answer, probability_text, sentence

from .synthetic import records, small_study

ROOT = Path(__file__).resolve().parents[2]


def told(levels, seeds=4):
    study = small_study(seeds=seeds)
    return results_of(study, records(study, levels))


def test_a_shown_difference_is_told_with_its_certainty():
    results = told({"pser": [5, 6, 7, 8], "uniform": [1, 2, 3, 4]})
    assert answer(results) == "`pser` beats `uniform` (p = 0.00041, corrected)."
    assert sentence(results.tested[0]).startswith("Yes: a run of pser scores higher")
    assert "probability 1.00, gain +200% [+142%, +258%] (16 runs on 2 games, p = 0.00041" in sentence(
        results.tested[0]
    )


def test_the_reverse_is_told_from_the_side_that_is_ahead():
    results = told({"uniform": [5, 6, 7, 8], "pser": [1, 2, 3, 4]})
    assert answer(results).startswith("`uniform` beats `pser`")
    assert sentence(results.tested[0]).startswith("No, the reverse")


def test_no_difference_is_called_so():
    results = told({"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7]})
    assert answer(results) == "No difference is shown in 1 of 1 comparisons."
    assert sentence(results.tested[0]).startswith("No difference shown")


def test_it_is_said_how_many_seeds_would_show_what_was_found():
    small = told({"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7.5]}).tested[0]
    assert small.probability.value == 0.5
    assert small.seeds_to_show is None
    assert sentence(small).endswith("(or 0.11).")
    larger = told({"pser": [1, 4, 5, 8], "uniform": [2, 3, 4, 7]}).tested[0]
    assert sentence(larger).endswith(f"(or 0.11), about {larger.seeds_to_show} seeds a game this one.")
    assert 20 < larger.seeds_to_show < 100
    tiny = told({"pser": [1, 4, 5, 8], "uniform": [2, 3, 5, 7]}).tested[0]
    assert sentence(tiny).endswith("more than 100 seeds a game this one.")


def test_few_runs_are_called_few():
    results = told({"pser": [5], "uniform": [1]})
    assert answer(results) == "So far, 1 of 1 comparisons cannot be told from so few runs."
    assert "even a clean sweep of these 4 runs would come by luck once in 2" in sentence(results.tested[0])
    assert answer(told({})) == "Not known yet: no run has finished."


def test_an_interval_is_given_only_where_the_runs_carry_one():
    level = told({"pser": [1, 4, 5, 8], "uniform": [2, 3, 6, 7]})
    assert re.search(r"probability 0\.\d\d \[0\.\d\d, \d\.\d\d\], gain", sentence(level.tested[0]))
    for levels in ({"pser": [5, 6, 7, 8], "uniform": [1, 2, 3, 4]}, {"pser": [5], "uniform": [1]}):
        (tested,) = told(levels).tested
        assert probability_text(tested) == "1.00"
        assert "1.00 [" not in report.tested_table(told(levels))


def test_rainbow_beside_dqn_is_told_by_means_and_by_tests():
    levels = {"rainbow-per": [4, 6], "dqn-per": [1, 3], "rainbow-pser": [2], "dqn-pser": [3]}
    told = answer(results_of(rainbow.STUDY, records(rainbow.STUDY, levels)))
    assert "above DQN's in 2 of 4 pairs of game and replay (breakout 2.0 to 5.0 against 2.0 to 3.0; " in told
    assert told.endswith("cannot be told from so few runs.")
    only = results_of(rainbow.STUDY, records(rainbow.STUDY, {"dqn-per": [1]}))
    assert answer(only) == "Not known yet: no runs of both agents on one game."


def test_a_published_point_is_the_mean_of_what_was_logged_before_it():
    curve = [(50_000, 2, 1.0), (60_000, 0, 0.0), (70_000, 100, 3.0), (100_000, 1, 9.0), (150_000, 50, 0.0)]
    first = 0.01 * 1.0
    first = 0.99 * first + 0.01 * 1.0
    second = first
    for _ in range(100):
        second = 0.99 * second + 0.01 * 3.0
    third = 0.99 * second + 0.01 * 9.0
    average = [(50_000, first), (70_000, second), (100_000, third), (150_000, third * 0.99**50)]
    assert check.moving_average(curve) == [(frames, pytest.approx(value)) for frames, value in average]
    # One value a point, 50,000 frames before it; or ten, the first of them there and the last 5,000 before it.
    assert check.as_published(curve, 100_000, 50_000) == pytest.approx(first)
    assert check.as_published(curve, 150_000, 50_000) == pytest.approx(third)
    steps = [(i * 50_000 + (10 - i) * 100_000) / 10 for i in range(11)][::-1]
    values = [
        first + (second - first) * (at - 50_000) / 20_000
        if at <= 70_000
        else second + (third - second) * (at - 70_000) / 30_000
        for at in steps[:10]
    ]
    assert check.as_published(curve, 100_000, 5_000) == pytest.approx(sum(values) / 10)


def test_a_run_that_began_later_or_ended_before_has_no_published_point():
    curve = [(50_000, 2, 1.0), (90_000, 1, 1.0)]
    assert check.as_published(curve, 50_000, 50_000) is None
    assert check.as_published(curve, 100_000, 5_000) is None
    assert check.as_published(curve, 100_000, 50_000) is not None
    assert check.as_published([(50_000, 0, 0.0)], 100_000, 50_000) is None


def test_the_check_counts_standard_errors_to_the_published_figures():
    study = check.STUDY.only(games=["minatar:breakout"])
    made = records(study, {"uniform": [5.0, 6.0, 7.0]})
    frames = [200_000, 500_000]
    for one in made.values():
        level = one.train["return_mean"][0]
        one.train.update({"frames": frames, "return_count": [1000] * 2, "return_mean": [level] * 2})
    found = check.tell(results_of(study, made))
    assert "| minatar:breakout | uniform | 250,000 | 6.00 ± 0.58 (3) |" in found.details
    assert re.fullmatch(r"Our mean lies within two standard errors .* at \d of 2 points.*", found.sentence)
    single = records(study, {"uniform": [5.0]})
    assert check.tell(results_of(study, single)).sentence.startswith("Not known yet")


def test_a_summary_stands_between_its_marks_and_nothing_else_changes():
    found = Findings({"small": told({"pser": [5], "uniform": [1]}), "other": told({})})
    page = f"before\n{START}\nstale\n{END}\nafter\n"
    new = put_between_marks(page, in_full(found, "there.md", "there"))
    assert new.startswith(f"before\n{START}\n\n| study |")
    assert new.endswith(f"{END}\nafter\n")
    assert "stale" not in new
    assert "[`small`](there.md#small) |" in new
    assert "without a run so far: [`other`](there.md#other)." in new
    assert put_between_marks(new, in_full(found, "there.md", "there")) == new


def test_the_pages_in_the_repository_are_what_the_records_say():
    found = Findings.read(ROOT / RECORDS)
    assert (ROOT / "docs" / "findings-training.md").read_text() == render(found)
    for name, results in found.begun.items():
        folder = ROOT / RECORDS / name
        sources = ["sources"] if shares_by_arm(results) else []
        names = (*results.study.figures, "curves", "measures", *sources)
        figures = [f"figures/{figure}.png" for figure in names]
        assert (folder / "README.md").read_text() == report.render(results, figures)
        assert (folder / "runs.csv").read_text() == report.runs_csv(results)
        assert all((folder / figure).is_file() for figure in figures)
    for name, summarize in PAGES.items():
        text = (ROOT / name).read_text()
        assert START in text
        assert put_between_marks(text, summarize(found)) == text


def test_the_records_stay_small():
    files = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 40_000_000


def test_findings_are_written_where_the_pages_are(tmp_path):
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "README.md").write_text("no marks here\n")
    for page in ("results.md", "how-to/choosing.md"):
        (tmp_path / "docs" / page).write_text(f"{START}{END}")
    written = list(write_findings(tmp_path))
    assert [path.name for path in written] == ["findings-training.md", "results.md", "choosing.md"]
    assert "0 of" in written[0].read_text()


def test_either_place_of_epsilon_is_compared_with_the_published_figures():
    study = epsilon.STUDY.only(games=["minatar:breakout"])
    made = records(study, {"uniform-beside": [6.0, 7.0, 8.0], "uniform-inside": [1.0, 1.1, 1.2]})
    for one in made.values():
        level = one.train["return_mean"][0]
        frames, count = [400_000, 500_000], [1000] * 2
        one.train.update({"frames": frames, "return_count": count, "return_mean": [level] * 2})
    found = epsilon.tell(results_of(study, made))
    assert "with ε = 0.01 beside the root at 1 of 1 points, and" in found.sentence
    assert "inside the root at 0 of 1 points (the furthest is -" in found.sentence
    assert found.details.count("| minatar:breakout | uniform-") == 2
    assert epsilon.tell(results_of(study, {})).sentence.startswith("Not known yet")


def test_fresh_seeds_are_compared_by_themselves_and_with_all():
    study = check_again.STUDY
    made = records(study, {"per-loss": [9.0, 9.1, 9.2, 3.0, 3.1, 3.2]})
    for one in made.values():
        level = one.train["return_mean"][0]
        one.train.update(
            {"frames": [200_000, 500_000], "return_count": [1000] * 2, "return_mean": [level] * 2}
        )
    found = check_again.tell(results_of(study, made))
    assert (
        "with fresh seeds at 2 of 2 points, and with all seeds at 0 of 2 points (the furthest is +"
        in found.sentence
    )
    assert "| 3.10 ± 0.06 (3) |" in found.details
    assert "(6) |" in found.details
    early = {path: one for path, one in made.items() if one.seed < 3}
    assert check_again.tell(results_of(study, early)).sentence.startswith("Not known yet")
