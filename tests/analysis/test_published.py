import numpy as np
import pytest

from pser.analysis.published import (
    dopamine_figures,
    human_table,
    minatar_figures,
    paper_bold,
    paper_scores,
    published_figures,
)


def test_paper_table_has_60_games_of_which_55_have_human_scores():
    rows = paper_scores()
    assert len({row.game for row in rows}) == 60
    assert sum(row.human is not None for row in rows) == 55
    assert sum(row.random is not None for row in rows) == 55


def test_each_game_of_the_table_has_a_bold_score():
    assert set(paper_bold()) == {row.game for row in paper_scores()}
    assert set(paper_bold().values()) == {"per", "pser", "both"}


def test_human_table_finds_a_game_however_it_is_spelled():
    for name in ("atari:SpaceInvaders", "atari:ALE/SpaceInvaders-v5", "atari:space_invaders"):
        row = human_table(name)
        assert row is not None
        assert row.game == "SpaceInvaders"


def test_human_table_is_none_without_a_human_score_or_outside_atari():
    assert human_table("atari:AirRaid") is None
    assert human_table("minatar:breakout") is None
    assert human_table("atari:NoSuchGame") is None


def test_dopamine_figures_cover_every_game_of_the_paper_both_agents_and_nine_points():
    games = {row.game for row in paper_scores()}
    assert set(dopamine_figures()) == {(game, agent) for game in games for agent in ("DQN", "Rainbow")}
    millions = [1, 2, 5, 10, 20, 50, 100, 150, 198]
    for figures in dopamine_figures().values():
        assert (figures.frames // 1_000_000).tolist() == millions
        assert set(figures.runs.tolist()) == {5}


def test_every_published_mean_lies_within_its_spread():
    for figures in (*dopamine_figures().values(), *minatar_figures().values()):
        assert np.all(figures.low <= figures.mean)
        assert np.all(figures.mean <= figures.high)


def test_dopamine_figures_are_those_published():
    pong = dopamine_figures()["Pong", "DQN"]
    assert pong.mean[-1] > 10  # DQN plays Pong well after 198M frames
    assert dopamine_figures()["AirRaid", "DQN"].mean[0] == 518.81


def test_minatar_figures_have_a_standard_error_and_the_seeds_behind_it():
    breakout = minatar_figures()["breakout", "per"]
    at = breakout.frames.tolist().index(500_000)
    assert breakout.mean[at] == 8.912
    assert breakout.high[at] - breakout.mean[at] == pytest.approx(0.362)
    assert breakout.runs[at] == 5
    assert set(minatar_figures()) == {
        (game, replay)
        for game in ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
        for replay in ("uniform", "per", "relo")
    }


def test_published_figures_are_found_by_the_name_of_the_environment():
    assert [x.name for x in published_figures("atari:ALE/Pong-v5")] == ["Dopamine DQN", "Dopamine Rainbow"]
    assert [x.agent for x in published_figures("minatar:space_invaders")] == ["uniform", "PER", "ReLo"]
    assert published_figures("gym:CartPole-v1") == ()
    assert published_figures("minatar:pong") == ()


def test_game_that_was_mended_since_is_never_laid_beside_ours():
    assert ("seaquest", "per") in minatar_figures()
    assert published_figures("minatar:seaquest") == ()


def test_figures_are_cut_at_the_frames_the_runs_have():
    cut = dopamine_figures()["Pong", "DQN"].until(10_000_000)
    assert cut.frames.tolist() == [1_000_000, 2_000_000, 5_000_000, 10_000_000]
    assert len(cut.mean) == len(cut.low) == len(cut.high) == len(cut.runs) == 4
