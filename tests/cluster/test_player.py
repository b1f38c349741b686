"""An actor's play: its priorities are those the network would give, without asking it twice."""

import numpy as np
import pytest

pytest.importorskip("torch")

from pser.cluster.chunk import observations_of
from pser.cluster.player import Player
from pser.learner.presets import preset_settings

BASE = {"initial": "td", "hidden": (16,), "n_step": 1, "seed": 3}


def player(game="gym:CartPole-v1", preset="classic", synchronous=False, serial=0, **changes):
    settings = preset_settings(preset, game).override({**BASE, **changes})
    return Player(settings, 3, serial, synchronous)


def play(one, steps=60, epsilon=0.5, version=0):
    return one.play(steps, epsilon, version, one.agent.get_weights())


@pytest.mark.parametrize("limit", [0, 7])
def test_priorities_at_hand_are_those_of_the_network(limit):
    one = player(max_episode_steps=limit)
    report, chunk = play(one)
    assert report.episodes
    assert chunk.truncated.any() == (limit == 7)
    now, following = observations_of(chunk, one.game.observation)
    flat = [part.reshape(-1) for part in (chunk.action, chunk.reward, chunk.terminated)]
    expected = one.agent.new_priorities(now, flat[0], flat[1], following, flat[2])
    np.testing.assert_allclose(chunk.td_error.reshape(-1), expected, rtol=1e-5, atol=1e-5)


def test_the_network_is_asked_once_a_step():
    one = player(max_episode_steps=10)
    asked = []
    ask = one.agent.q_values
    one.agent.q_values = lambda observation: (asked.append(len(observation)), ask(observation))[1]
    _, chunk = play(one, steps=25)
    assert asked == [3] * 26 + [int(chunk.truncated.sum())]


@pytest.mark.parametrize(
    "changes", [{"loss": "c51", "priority_signal": "kl"}, {"priority_signal": "clipped"}, {"noisy": True}]
)
def test_other_signals_come_from_the_network_itself(changes):
    one = player(**changes)
    _, chunk = play(one, steps=20)
    now, following = observations_of(chunk, one.game.observation)
    flat = [part.reshape(-1) for part in (chunk.action, chunk.reward, chunk.terminated)]
    expected = one.agent.new_priorities(now, flat[0], flat[1], following, flat[2])
    np.testing.assert_array_equal(chunk.td_error.reshape(-1), expected)


def test_without_current_td_no_priorities_are_sent():
    _, chunk = play(player(initial="max"), steps=5)
    assert chunk.td_error is None


def test_an_actor_plays_by_the_weights_of_the_version_it_is_told():
    one = player()
    weights = one.agent.get_weights()
    weights.flags.writeable = False
    one.play(1, 0.0, 1, np.zeros_like(weights))
    assert not one.agent.get_weights().any()
    one.play(1, 0.0, 1, weights)  # a version it has: no need to look
    assert not one.agent.get_weights().any()
    one.play(1, 0.0, 2, weights)
    np.testing.assert_array_equal(one.agent.get_weights(), weights)


def test_actors_play_different_games_and_explore_differently():
    chunks = [play(player(serial=serial), steps=10)[1] for serial in (0, 1, 1)]
    assert chunks[0].frames.tobytes() != chunks[1].frames.tobytes()
    assert chunks[1].frames.tobytes() == chunks[2].frames.tobytes()


def test_each_environment_explores_by_its_own_share():
    one = player(initial="max")
    one.agent.num_actions = 2
    greedy = one.agent.q_values
    one.agent.q_values = lambda observation: np.repeat([[1.0, 0.0]], len(observation), 0)
    _, chunk = one.play(200, np.array([0.0, 0.3, 1.0]), 0, one.agent.get_weights())
    one.agent.q_values = greedy
    shares = chunk.action.mean(0)
    assert shares[0] == 0.0
    assert 0.05 < shares[1] < 0.3
    assert 0.35 < shares[2] < 0.65


def test_a_player_goes_on_from_its_state():
    one, other = player(synchronous=True), player(synchronous=True)
    play(one, steps=30)
    state = one.get_state()
    assert other.set_state(state)
    weights = one.agent.get_weights()
    mine, theirs = one.play(20, 0.3, 9, weights)[1], other.play(20, 0.3, 9, weights)[1]
    assert mine.frames.tobytes() == theirs.frames.tobytes()
    np.testing.assert_array_equal(mine.action, theirs.action)
