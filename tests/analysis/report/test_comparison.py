import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.comparison import compare
from pser.analysis.report.loading import load_runs
from pser.analysis.report.scoreboard import build_scoreboard
from pser.analysis.report.words import summary
from pser.analysis.statistics import aggregate


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
    assert first.arrangements == 20


def test_turned_pair_is_the_same_comparison_from_the_other_side(tmp_path):
    write_sweep(tmp_path, seeds=3, noise=3.0)
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


def test_single_seed_has_no_interval_and_the_words_say_no_confidence(tmp_path):
    write_sweep(tmp_path, seeds=1)
    _, _, comparison = compared(tmp_path)
    assert all(value.interval is None for label in comparison.labels for value in label.statistics.values())
    assert comparison.pairs[0].probability.interval is None
    first = words_of(tmp_path)[0]
    assert first.startswith("PSER_MaxPrio_MAX scored higher than PER_MaxPrio on minatar:breakout.")
    assert "no confidence" in first
    assert "probability" not in first


def test_words_tell_the_winner_the_margin_and_that_few_seeds_settle_nothing(tmp_path):
    write_sweep(tmp_path, seeds=3, noise=0.1)
    first = words_of(tmp_path)[0]
    assert first.startswith("PSER_MaxPrio_MAX is ahead of PER_MaxPrio on minatar:breakout.")
    assert "with probability 1.00 [1.00, 1.00]; its mean score is 2" in first
    assert "could well be luck (p = 0.100)" in first
    assert "even a clean sweep comes by luck once in 10" in first


def test_single_seeds_on_many_games_are_tested_over_the_games(tmp_path):
    games = tuple(f"gym:Game{number}-v0" for number in range(8))
    write_sweep(tmp_path, envs=games, replays=("pser", "per"), seeds=1, noise=0.1)
    first = words_of(tmp_path)[0]
    assert first.startswith("PSER_MaxPrio_MAX scored higher than PER_MaxPrio on 8 of 8 games.")
    assert "over one seed each on 8 games this is very unlikely to be luck (p = 0.008)" in first


def test_words_call_a_clear_result_unlikely_to_be_luck(tmp_path):
    envs = ("minatar:breakout", "minatar:asterix", "minatar:freeway")
    write_sweep(tmp_path, envs=envs, seeds=3, noise=0.1)
    first = words_of(tmp_path)[0]
    assert "on 3 games" in first
    assert "very unlikely to be luck (p < 0.001)" in first
    assert "higher in 3 of 3" in first
    assert "clean sweep" not in first


def test_words_name_the_loser_second_even_if_it_is_pser(tmp_path):
    for seed in range(3):
        write_run(tmp_path / f"p{seed}", Synthetic(replay="pser", level=5, noise=0.1, seed=seed))
        write_run(tmp_path / f"q{seed}", Synthetic(replay="per", level=10, noise=0.1, seed=seed))
    assert words_of(tmp_path)[0].startswith("PER_MaxPrio is ahead of PSER_MaxPrio_MAX")


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


def test_same_seed_gives_the_same_intervals(tmp_path):
    write_sweep(tmp_path, seeds=4, noise=2.0)
    assert compared(tmp_path)[2] == compared(tmp_path)[2]
    assert compared(tmp_path)[2] != compared(tmp_path, seed=1)[2]
