import re

import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.comparison import compare, normalised_scores
from pser.analysis.report.loading import load_runs
from pser.analysis.report.scoreboard import build_scoreboard
from pser.analysis.report.words import summary
from pser.analysis.statistics import aggregate
from pser.analysis.statistics.bootstrap import improvement_interval, stratified_interval
from pser.analysis.statistics.comparisons import holm
from pser.analysis.statistics.power import seeds_needed


def compared(path, kind="final", seed=0):
    runs = load_runs([path])
    board = build_scoreboard(runs, 0.0)
    rng = np.random.default_rng(seed)
    return runs, board, compare(board, runs, kind=kind, rng=rng, resamples=300)


def words_of(path, **more):
    return [str(sentence) for sentence in summary(*compared(path, **more))]


def test_pairs_start_with_pser_over_per_and_carry_the_statistics(tmp_path):
    write_sweep(tmp_path, seeds=3)
    _, board, comparison = compared(tmp_path)
    first = comparison.pairs[0]
    assert (first.x, first.y) == ("PSER_MaxPrio_MAX", "PER_MaxPrio")
    x, y = ([board.boards[0].values(label, "final")] for label in (first.x, first.y))
    assert first.probability.value == pytest.approx(float(aggregate.probability_of_improvement(x, y)))
    assert first.changes()["minatar:breakout"] == pytest.approx(100 * (x[0].mean() / y[0].mean() - 1))
    assert first.smallest_p_value == 0.1


def test_turned_pair_is_the_same_comparison_from_the_other_side(tmp_path):
    write_sweep(tmp_path, seeds=5, noise=8.0)
    _, _, comparison = compared(tmp_path)
    pair = comparison.pairs[0]
    turned = pair.turned()
    assert turned.probability.value == pytest.approx(1 - pair.probability.value)
    assert turned.probability.interval.low == pytest.approx(1 - pair.probability.interval.high)
    x, y = pair.means["minatar:breakout"]
    assert turned.means["minatar:breakout"] == (y, x)
    assert turned.turned().means == pair.means


def test_aggregates_cover_the_games_of_the_main_labels_only(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), replays=("pser", "per"), seeds=2)
    for seed in (0, 1):
        write_run(tmp_path / f"add{seed}", Synthetic(label="PSER_MaxPrio_ADD", seed=seed))
    _, _, comparison = compared(tmp_path)
    assert comparison.envs == ("minatar:asterix", "minatar:breakout")
    assert [label.label for label in comparison.labels] == ["PSER_MaxPrio_MAX", "PER_MaxPrio"]
    partly = next(pair for pair in comparison.pairs if "PSER_MaxPrio_ADD" in (pair.x, pair.y))
    assert partly.envs == ("minatar:breakout",)


def test_single_seed_has_no_interval_and_the_words_say_it_shows_nothing(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=1)
    _, _, comparison = compared(tmp_path)
    assert all(value.interval is None for label in comparison.labels for value in label.statistics.values())
    assert comparison.pairs[0].probability.interval is None
    write_sweep(tmp_path / "one", seeds=1)
    first = words_of(tmp_path / "one")[0]
    assert first.startswith(
        "No difference shown between PSER_MaxPrio_MAX and PER_MaxPrio on minatar:breakout"
    )
    assert "A single seed a side cannot show one" in first
    assert "ahead" not in first


def test_clean_sweep_of_three_seeds_shows_no_difference_and_has_no_interval(tmp_path):
    write_sweep(tmp_path, seeds=3, noise=0.1)
    _, _, comparison = compared(tmp_path)
    assert comparison.pairs[0].probability.value == 1.0
    assert comparison.pairs[0].probability.interval is None
    first = words_of(tmp_path)[0]
    assert first.startswith(
        "No difference shown between PSER_MaxPrio_MAX and PER_MaxPrio on minatar:breakout (p = 0.30)."
    )
    assert "Mean scores 1" in first
    assert "even if every run of one beat every run of the other, p = 0.10." in first
    assert not any("ahead" in sentence for sentence in words_of(tmp_path))


def test_interval_that_shrinks_to_a_point_is_left_out(tmp_path):
    write_sweep(tmp_path, seeds=5, noise=0.01)
    _, _, comparison = compared(tmp_path)
    assert comparison.pairs[0].probability.value == 1.0
    assert comparison.pairs[0].probability.interval is None


def test_nobody_is_ahead_where_the_test_shows_nothing(tmp_path):
    """Whatever the seeds give: the word is used exactly where the corrected p-value allows it."""
    told = set()
    for case in range(12):
        folder = tmp_path / str(case)
        write_sweep(
            folder, seeds=5, noise=(0.2, 1.5, 4.0)[case % 3], replays=("pser", "per", "uniform"), shift=case
        )
        runs, board, comparison = compared(folder)
        sentences = [str(s) for s in summary(runs, board, comparison)][:-1]
        for pair in comparison.pairs:
            (sentence,) = [s for s in sentences if pair.x in s and pair.y in s]
            assert ("is ahead of" in sentence) == (pair.corrected < 0.05)
            assert ("No difference shown" in sentence) == (pair.corrected >= 0.05)
            told.add(pair.shown)
    assert told == {True, False}


def test_p_values_are_corrected_for_all_pairs_of_the_page(tmp_path):
    write_sweep(tmp_path, seeds=4, noise=2.0)
    runs, board, comparison = compared(tmp_path)
    assert [pair.corrected for pair in comparison.pairs] == holm([pair.p_value for pair in comparison.pairs])
    assert "p corrected for 3 comparisons (Holm)" in str(summary(runs, board, comparison)[-1])


def test_single_seeds_on_many_games_are_tested_over_the_games(tmp_path):
    games = tuple(f"gym:Game{number}-v0" for number in range(8))
    write_sweep(tmp_path, envs=games, replays=("pser", "per"), seeds=1, noise=0.1)
    first = words_of(tmp_path)[0]
    assert first.startswith("PSER_MaxPrio_MAX is ahead of PER_MaxPrio on 8 games (p = 0.008).")
    assert "has the higher mean on 8 of 8 games" in first


def test_words_call_a_clear_result_by_its_name(tmp_path):
    envs = ("minatar:breakout", "minatar:asterix", "minatar:freeway")
    write_sweep(tmp_path, envs=envs, seeds=3, noise=0.1)
    first = words_of(tmp_path)[0]
    assert first.startswith("PSER_MaxPrio_MAX is ahead of PER_MaxPrio on 3 games (p < 0.001).")
    assert "has the higher mean on 3 of 3 games" in first
    assert "So few seeds" not in first


def test_words_say_how_many_seeds_a_difference_would_take_that_is_not_shown(tmp_path):
    for seed in range(5):
        for replay, level in (("pser", 10.0), ("per", 9.5)):
            write_run(
                tmp_path / f"{replay}{seed}", Synthetic(replay=replay, level=level, noise=2.0, seed=seed)
            )
    (pair,) = compared(tmp_path)[2].pairs
    assert 0.5 < pair.probability.value < 0.9
    assert not pair.shown
    (told,) = re.findall(
        r"scores higher with probability (\d\.\d\d): to show as much takes about (\d+) seeds each",
        words_of(tmp_path)[0],
    )
    assert told == (
        f"{pair.probability.value:.2f}",
        str(seeds_needed(pair.probability.value, 1, 0.05)),
    )


def test_words_name_the_loser_second_even_if_it_is_pser(tmp_path):
    for seed in range(5):
        write_run(tmp_path / f"p{seed}", Synthetic(replay="pser", level=5, noise=0.1, seed=seed))
        write_run(tmp_path / f"q{seed}", Synthetic(replay="per", level=10, noise=0.1, seed=seed))
    first = words_of(tmp_path)[0]
    assert first.startswith("PER_MaxPrio is ahead of PSER_MaxPrio_MAX")
    assert "Mean scores 9." in first


def test_one_label_alone_has_nothing_to_be_compared_with(tmp_path):
    write_sweep(tmp_path, replays=("pser",), seeds=2)
    assert "nothing to compare it with" in words_of(tmp_path)[0]


def test_runs_without_returns_are_said_to_have_nothing_to_compare(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(evaluations=False))
    (folder / "train.jsonl").write_text("")
    assert words_of(tmp_path)[0].startswith("No returns were recorded yet")


def test_best_scores_are_compared_if_asked(tmp_path):
    write_sweep(tmp_path, seeds=2)
    _, board, comparison = compared(tmp_path, kind="best")
    mean = board.boards[0].values("PSER_MaxPrio_MAX", "best").mean()
    assert comparison.pairs[0].means["minatar:breakout"][0] == pytest.approx(mean)
    assert "by the score of the best snapshot" in words_of(tmp_path, kind="best")[-1]


def test_intervals_are_as_wide_as_few_seeds_make_them(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=4, noise=16.0)
    runs = load_runs([tmp_path])
    board = build_scoreboard(runs, 0.0)
    found = compare(board, runs, kind="final", rng=np.random.default_rng(0), resamples=5000)
    rng = np.random.default_rng(1)
    wanted = 0.0
    for pair in found.pairs:
        x, y = ([one.values(name, "final") for one in board.boards] for name in (pair.x, pair.y))
        wanted += width(improvement_interval(x, y, rng, resamples=5000, left_out=1))
    # Their ends lie on a few values; as many draws as runs would make them narrower by a tenth.
    assert sum(width(pair.probability.interval) for pair in found.pairs) == pytest.approx(wanted, rel=0.05)
    label = found.labels[0]
    scores = normalised_scores(board, label.label, found.envs, "final")
    wanted = stratified_interval(aggregate.mean, scores, rng, resamples=5000, left_out=1)
    assert width(label.statistics["mean"].interval) == pytest.approx(width(wanted), rel=0.05)


def width(interval):
    return interval.high - interval.low


def test_same_seed_gives_the_same_intervals(tmp_path):
    write_sweep(tmp_path, seeds=5, noise=8.0)
    assert compared(tmp_path)[2] == compared(tmp_path)[2]
    assert compared(tmp_path)[2] != compared(tmp_path, seed=1)[2]


def test_shuffles_are_enough_for_the_number_of_comparisons(tmp_path):
    write_sweep(tmp_path, envs=("minatar:breakout", "minatar:asterix"), seeds=6, noise=0.1)
    runs = load_runs([tmp_path])
    board = build_scoreboard(runs, 0.0)
    comparison = compare(board, runs, kind="final", rng=np.random.default_rng(0), resamples=20)
    assert comparison.pairs[0].smallest_p_value < 2 / 20_000  # too many to count, so they are sampled
    assert all(pair.shown for pair in comparison.pairs)


def test_words_say_that_few_seeds_hardly_show_anything_among_many_comparisons(tmp_path):
    write_sweep(tmp_path, seeds=4, noise=0.1)
    first = words_of(tmp_path)[0]
    assert first.startswith(
        "No difference shown between PSER_MaxPrio_MAX and PER_MaxPrio on minatar:breakout (p = 0.086)"
    )
    assert "Among 3 comparisons so few seeds can hardly show one" in first
