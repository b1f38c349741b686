"""Games by name."""

import pytest

from pser.env.atari import AtariGame
from pser.env.gymnasium import GymGame
from pser.env.make import make_game
from pser.env.minatar import MinAtarGame
from pser.errors import PserError


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("atari:Pong", AtariGame, "atari:Pong"),
        ("atari:space_invaders", AtariGame, "atari:SpaceInvaders"),
        ("minatar:SpaceInvaders", MinAtarGame, "minatar:space_invaders"),
        ("gym:CartPole-v1", GymGame, "gym:CartPole-v1"),
    ],
)
def test_a_name_makes_its_game(spec, kind, name):
    game = make_game(spec, num_envs=2)
    assert isinstance(game, kind)
    assert (game.name, game.num_envs) == (name, 2)
    game.close()


def test_atari_defaults_differ_between_training_and_evaluation(monkeypatch):
    given = []
    monkeypatch.setattr("pser.env.atari.AtariGame", lambda name, **options: given.append(options))
    make_game("atari:Pong")
    make_game("atari:Pong", evaluation=True)
    make_game(
        "atari:Pong", evaluation=True, life_loss=True, noop_max=7, max_episode_steps=0, sticky_actions=0.25
    )
    names = ("life_loss", "noop_max", "max_episode_steps", "sticky_actions")
    assert [tuple(options[name] for name in names) for options in given] == [
        (True, 0, 27_000, 0.0),
        (False, 30, 27_000, 0.0),
        (True, 7, 0, 0.25),
    ]


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("Pong", {}, "got 'Pong': write atari:Pong$"),
        ("breakout", {}, "write atari:Breakout or minatar:breakout$"),
        ("atari:", {}, "FAMILY:NAME with FAMILY one of atari, minatar, gym"),
        ("CartPole-v1", {}, "got 'CartPole-v1': write gym:CartPole-v1$"),
        ("nonsense", {}, "write for example atari:Pong$"),
        ("attari:Pong", {}, "there is no family of games 'attari': did you mean atari"),
        ("atari:Brekout", {}, "there is no Atari game 'Brekout': did you mean Breakout"),
        ("minatar:pong", {}, "there is no MinAtar game 'pong'"),
        ("atari:Pong", {"num_envs": 0}, "num_envs must be a whole number of at least 1, got 0"),
        ("gym:CartPole-v1", {"num_envs": 1.5}, "num_envs must be a whole number"),
        ("minatar:breakout", {"noop_max": 30}, "noop_max is for Atari games, got 30 for minatar:breakout"),
        ("minatar:breakout", {"life_loss": True}, "life_loss is for Atari games"),
        ("gym:CartPole-v1", {"sticky_actions": 0.25}, "sticky_actions is for Atari and MinAtar games"),
        ("atari:Pong", {"sticky_actions": -0.1}, "sticky_actions must be a probability"),
        ("atari:Pong", {"noop_max": -1}, "noop_max must be a whole number of at least 0"),
    ],
)
def test_mistakes_are_one_line(spec, options, message):
    with pytest.raises(PserError, match=message) as caught:
        make_game(spec, **options)
    assert "\n" not in str(caught.value)


def test_settings_a_family_does_not_have_may_be_off():
    game = make_game("gym:CartPole-v1", noop_max=0, life_loss=False, sticky_actions=0.0, max_episode_steps=0)
    assert game.name == "gym:CartPole-v1"
