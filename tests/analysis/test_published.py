import numpy as np

from pser.analysis.published import dopamine_curve, dopamine_curves, human_table, paper_bold, paper_scores


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


def test_dopamine_curves_cover_every_game_of_the_paper_and_both_agents():
    games = {row.game for row in paper_scores()}
    assert set(dopamine_curves()) == {(game, agent) for game in games for agent in ("DQN", "Rainbow")}


def test_dopamine_curve_counts_frames_from_the_end_of_the_first_iteration():
    curve = dopamine_curve("atari:Pong", "DQN")
    assert curve is not None
    assert curve.frames[0] == 1_000_000
    assert curve.runs == 5
    assert np.all(curve.low <= curve.mean)
    assert np.all(curve.mean <= curve.high)
    assert curve.mean[-1] > 10  # DQN plays Pong well after 199M frames
    assert dopamine_curve("minatar:breakout", "DQN") is None
