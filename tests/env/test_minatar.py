"""MinAtar games against MinAtar's own wrapper."""

import importlib
import sys

import numpy as np
import pytest

from pser.env.minatar import GAMES, MinAtarGame
from pser.env.seeds import spread_seed
from pser.errors import PserError
from pser.spec import Array

each_game = pytest.mark.parametrize("name", GAMES)


@pytest.fixture
def minatar(monkeypatch):
    """The package itself, without the seconds that its optional plotting libraries take to import."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "minatar"]:
        monkeypatch.delitem(sys.modules, name)
    yield importlib.import_module("minatar")
    for name in [name for name in sys.modules if name.partition(".")[0] == "minatar"]:
        del sys.modules[name]


@each_game
def test_games_are_those_of_minatars_own_environment(name, minatar):
    game = MinAtarGame(name, num_envs=2, sticky_actions=0.3)
    observation = game.reset(11)
    theirs = [minatar.Environment(name, sticky_action_prob=0.3) for _ in range(2)]
    for number, env in enumerate(theirs):
        env.seed(spread_seed(11, number))
        env.reset()
        np.testing.assert_array_equal(observation[number], env.state().transpose(2, 0, 1))
    rng = np.random.default_rng(0)
    for _ in range(400):
        actions = rng.integers(0, 6, 2)
        step = game.step(actions)
        for number, env in enumerate(theirs):
            reward, terminal = env.act(actions[number])
            assert step.reward[number] == reward
            assert step.terminated[number] == terminal
            np.testing.assert_array_equal(step.next_observation[number], env.state().transpose(2, 0, 1))
            if terminal:
                env.reset()
            np.testing.assert_array_equal(step.observation[number], env.state().transpose(2, 0, 1))


@each_game
def test_the_whole_state_of_a_game_is_saved(name):
    game = MinAtarGame(name)
    game.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        game.step(rng.integers(0, 6, 1))
    other = MinAtarGame(name)
    other.set_state(game.get_state())
    ours, theirs = vars(game._envs[0]), vars(other._envs[0])
    assert ours.keys() == theirs.keys()
    for key in ours.keys() - {"random"}:
        np.testing.assert_array_equal(np.array(ours[key], object), np.array(theirs[key], object), key)
    assert game._envs[0].random.rand() == other._envs[0].random.rand()


def test_observations_are_stored_as_bytes_of_zero_and_one():
    game = MinAtarGame("seaquest", num_envs=2)
    observation = game.reset(0)
    assert game.observation == Array((10, 10, 10), np.uint8)
    assert observation.dtype == np.uint8
    assert set(np.unique(observation)) == {0, 1}


def test_all_six_actions_are_offered_unless_the_minimal_set_is_asked_for():
    assert MinAtarGame("breakout").num_actions == 6
    game = MinAtarGame("breakout", minimal_actions=True, sticky_actions=0.0)
    assert game.num_actions == 3
    before = game.reset(0)[0, 0, 9].argmax()
    assert game.step(np.array([2])).observation[0, 0, 9].argmax() == before + 1  # The third action is: right.


def test_a_certain_sticky_action_never_changes():
    game = MinAtarGame("breakout", sticky_actions=1.0)
    paddle = game.reset(0)[0, 0]
    for _ in range(5):
        np.testing.assert_array_equal(game.step(np.array([1])).observation[0, 0], paddle)


def test_a_cut_game_shows_its_true_final_observation():
    cut, uncut = MinAtarGame("asterix", max_episode_steps=7), MinAtarGame("asterix")
    first = cut.reset(2)
    uncut.reset(2)
    for moment in range(1, 8):
        ours, theirs = cut.step(np.array([1])), uncut.step(np.array([1]))
        np.testing.assert_array_equal(ours.next_observation, theirs.next_observation)
        assert ours.truncated[0] == ours.finished[0] == (moment == 7)
        assert not ours.terminated[0]
    np.testing.assert_array_equal(ours.observation, first)
    assert not cut.step(np.array([1])).finished[0]


def test_freeway_ends_by_its_own_clock_as_a_terminal():
    game = MinAtarGame("freeway")
    game.reset(0)
    ends = [step for step in (game.step(np.array([0])) for _ in range(2501)) if step.finished[0]]
    assert [(step.terminated[0], step.episode_length[0]) for step in ends] == [(True, 2501)]


def test_the_difficulty_grows_only_if_ramping_is_on():
    for ramping in (True, False):
        game = MinAtarGame("asterix", difficulty_ramping=ramping, sticky_actions=0.0)
        game.reset(0)
        env = game._envs[0]
        for _ in range(250):
            env.terminal = False
            env.act(0)
        assert (env.difficulty_ramp() > 0) == ramping


def test_the_board_is_drawn_with_one_colour_per_channel():
    game = MinAtarGame("breakout")
    game.reset(0)
    for _ in range(3):
        game.step(np.array([0]))
    image = game.render()
    assert image.shape == (160, 160, 3)
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) == 5  # Floor, paddle, ball, its trail, bricks.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "brekout"}, "there is no MinAtar game 'brekout': did you mean breakout"),
        ({"game": "breakout", "num_envs": 0}, "num_envs must be a whole number of at least 1, got 0"),
        ({"game": "breakout", "sticky_actions": 1.5}, "sticky_actions must be a probability"),
        (
            {"game": "breakout", "max_episode_steps": -1},
            "max_episode_steps must be a whole number of at least 1",
        ),
        ({"game": "breakout", "seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_setting_mistakes_are_one_line(options, message):
    with pytest.raises(PserError, match=message) as caught:
        MinAtarGame(**options)
    assert "\n" not in str(caught.value)


def test_a_missing_minatar_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(PserError, match=r"pip install 'pser\[minatar\]'"):
        MinAtarGame("breakout")
