import itertools
import subprocess
import sys

import numpy as np
import pytest

from pser.env.blind_cliffwalk import (
    alternating_actions,
    bootstrapped_values,
    discount,
    exhaustive_memory,
    optimal_values,
)
from pser.errors import PserError

gymnasium = pytest.importorskip("gymnasium", reason="the environment needs the study extra")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from pser.env.blind_cliffwalk_gym import BlindCliffwalk  # noqa: E402


def play(env, actions):
    """The transitions (state, action, reward, next state, terminated) of one action sequence until it
    ends."""
    state, _ = env.reset()
    episode = []
    for action in actions:
        following, reward, terminated, truncated, _ = env.step(action)
        assert not truncated
        episode.append((int(state), int(action), float(reward), int(following), terminated))
        state = following
        if terminated:
            break
    return episode


@pytest.mark.parametrize("states", [1, 2, 7, 16])
def test_registered_environment_passes_the_gymnasium_checker(states):
    check_env(gymnasium.make("pser/BlindCliffwalk-v0", states=states, render_mode="ansi").unwrapped)


def test_registered_environments_have_a_time_limit_that_no_episode_reaches():
    assert gymnasium.spec("pser/BlindCliffwalk-v0").max_episode_steps == 1_000
    env = gymnasium.make("pser/OnlineCliffwalk6-v0")
    env.reset()
    for action in alternating_actions(6):
        *_, terminated, truncated, _ = env.step(action)
    assert terminated
    assert not truncated


def test_the_environment_is_found_by_its_module_without_an_import():
    code = "import gymnasium; gymnasium.make('pser.env:pser/BlindCliffwalk-v0').reset()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_picture_shows_the_walker_and_the_reward():
    env = BlindCliffwalk(3, render_mode="rgb_array")
    env.reset()
    pictures = [env.render()]
    env.step(np.int64(env.right_actions[0]))
    pictures.append(env.render())
    for place, picture in enumerate(pictures):
        assert picture.shape == (16, 4 * 16, 3)
        assert picture.dtype == np.uint8
        middles = picture[8, 8::16].tolist()
        expected = [[200, 200, 200]] * 3 + [[240, 200, 60]]
        expected[place] = [60, 110, 200]
        assert middles == expected


def test_importing_pser_alone_does_not_import_gymnasium():
    code = "import sys, pser; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_right_actions_lead_to_the_reward_and_wrong_ones_end_the_episode():
    env = BlindCliffwalk(5)
    episode = play(env, env.right_actions)
    assert [step[0] for step in episode] == [0, 1, 2, 3, 4]
    assert [step[2] for step in episode] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert [step[4] for step in episode] == [False] * 4 + [True]
    for s in range(5):
        actions = list(env.right_actions)
        actions[s] = 1 - actions[s]
        episode = play(env, actions)
        assert len(episode) == s + 1
        assert episode[-1][2:] == (0.0, 0, True)


def test_the_right_action_varies_by_state_and_can_be_chosen():
    assert set(alternating_actions(2)) == {0, 1}
    env = gymnasium.make("pser/BlindCliffwalk-v0", states=3, right_actions=(1, 1, 0))
    assert play(env, (1, 1, 0))[-1][2] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"states": 0}, "at least 1 state"),
        ({"states": 3, "right_actions": (0, 1)}, "one action"),
        ({"states": 1, "right_actions": (2,)}, "one action"),
    ],
)
def test_a_bad_environment_is_refused(arguments, message):
    with pytest.raises(PserError, match=message):
        BlindCliffwalk(**arguments)


def test_step_refuses_a_finished_episode_and_an_unknown_action():
    env = BlindCliffwalk(1)
    with pytest.raises(PserError, match="call reset"):
        env.step(0)
    env.reset()
    with pytest.raises(PserError, match="0 or 1"):
        env.step(2)


def test_render_shows_the_walker():
    env = BlindCliffwalk(3, render_mode="ansi")
    env.reset()
    env.step(0)
    assert env.render() == ".@.$"
    assert BlindCliffwalk(3).render() is None


@pytest.mark.parametrize("states", [1, 2, 3, 6, 10, 16])
def test_exhaustive_memory_has_the_counted_transitions(states):
    memory = exhaustive_memory(states, np.random.default_rng(0))
    assert len(memory) == 2 ** (states + 1) - 2
    assert memory.first.sum() == 2**states
    assert memory.rewarded.sum() == 1
    assert memory.terminated.sum() == 2**states
    for s in range(states):  # 2^(n−i) copies of each pair of s_i, i = s + 1
        copies = np.bincount(memory.pair, minlength=2 * states)[2 * s : 2 * s + 2]
        assert copies.tolist() == [2 ** (states - s - 1)] * 2


@pytest.mark.parametrize("states", [1, 2, 3, 5])
def test_exhaustive_memory_is_what_the_environment_gives(states):
    env = BlindCliffwalk(states)
    expected = sorted(tuple(play(env, actions)) for actions in itertools.product((0, 1), repeat=states))
    memory = exhaustive_memory(states, np.random.default_rng(3))
    episodes = []
    for i in range(len(memory)):
        if memory.first[i]:
            episodes.append([])
        following = 0 if memory.terminated[i] else int(memory.state[i]) + 1
        row = (memory.state[i], memory.action[i], memory.rewarded[i], following, memory.terminated[i])
        episodes[-1].append((int(row[0]), int(row[1]), float(row[2]), following, bool(row[4])))
    assert sorted(map(tuple, episodes)) == expected


def test_exhaustive_memory_is_in_random_order_that_the_generator_decides():
    one, same, other = (exhaustive_memory(8, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one.pair, same.pair)
    assert not np.array_equal(one.pair, other.pair)


def test_exhaustive_memory_refuses_what_would_not_fit():
    with pytest.raises(PserError, match="at most 20"):
        exhaustive_memory(21, np.random.default_rng(0))
    with pytest.raises(PserError, match="at least 1"):
        exhaustive_memory(0, np.random.default_rng(0))


@pytest.mark.parametrize("states", [1, 2, 5, 13, 16])
def test_printed_values_solve_the_bellman_equation_when_episode_ends_are_terminal(states):
    gamma, values = discount(states), optimal_values(states)
    for s in range(states):
        target = 1.0 if s == states - 1 else gamma * values[s + 1].max()
        assert values[s, 0] == pytest.approx(target, rel=1e-12)
        assert values[s, 1] == 0.0


@pytest.mark.parametrize("states", [2, 5, 16])
def test_printed_values_do_not_solve_the_chain_that_bootstraps_from_the_initial_state(states):
    gamma, values = discount(states), bootstrapped_values(states)
    for s in range(states):
        following = values[0] if s == states - 1 else values[s + 1]
        assert values[s, 0] == pytest.approx((s == states - 1) + gamma * following.max(), rel=1e-12)
        assert values[s, 1] == pytest.approx(gamma * values[0].max(), rel=1e-12)
    assert np.abs(values - optimal_values(states)).max() > 0.3
