"""Atari games on the real emulator."""

import csv
import sys
from importlib.resources import files

import numpy as np
import pytest

import pser
from pser.env import atari
from pser.env.atari import AtariGame
from pser.env.emulators import Played
from pser.env.seeds import spread_seed
from pser.errors import PserError
from pser.spec import Frames

ale_py = pytest.importorskip("ale_py")


def test_all_sixty_games_of_the_paper_have_a_cartridge():
    import gymnasium

    with (files("pser") / "data" / "paper_scores.csv").open() as file:
        names = [row["game"] for row in csv.DictReader(file)]
    assert len(names) == 60
    for name in names:
        rom = atari._find_rom(name)
        assert atari.game_name(rom) == name
        assert ale_py.roms.get_rom_path(rom).is_file()
        assert f"ALE/{name}-v5" in gymnasium.registry


def test_each_observation_is_the_last_one_shifted_and_no_transition_spans_a_reset():
    """What `Frames` needs, at every step: through life losses, terminations and truncations."""
    env = AtariGame("Breakout", num_envs=3, max_episode_steps=180)
    assert env.observation == Frames((84, 84), stack=4)
    observation = env.reset(0)
    rng = np.random.default_rng(0)
    seen = {"life lost": 0, "game over": 0, "cut": 0}
    for _ in range(700):
        step = env.step(rng.integers(0, env.num_actions, 3))
        np.testing.assert_array_equal(step.next_observation[:, :-1], observation[:, 1:])
        life_lost = step.terminated & ~step.finished
        # A lost life ends the learning episode while the screens go on.
        np.testing.assert_array_equal(step.observation[life_lost], step.next_observation[life_lost])
        # After a reset nothing of the old game is left: three black screens and the first of the new game.
        assert not step.observation[step.finished, :-1].any()
        assert step.observation[step.finished, -1].any(axis=(1, 2)).all()
        seen["life lost"] += life_lost.sum()
        seen["game over"] += (step.terminated & step.finished).sum()
        seen["cut"] += step.truncated.sum()
        observation = step.observation
    assert min(seen.values()) >= 3, seen
    env.close()


def test_the_memory_gives_back_what_the_game_showed():
    game = AtariGame("Breakout", num_envs=2, max_episode_steps=40, noop_max=10)
    memory = pser.ReplayMemory(
        capacity=150, observation=game.observation, action=pser.Array((), np.int64), num_envs=2, seed=0
    )
    observation = game.reset(0)
    rng = np.random.default_rng(0)
    shown = {}
    for _ in range(130):
        action = rng.integers(0, 4, 2)
        step = game.step(action)
        ids = memory.add(
            observation, action, step.reward, step.next_observation, step.terminated, step.truncated
        )
        for row, identity in enumerate(ids.tolist()):
            shown[identity] = (observation[row], step.next_observation[row], step.terminated[row])
        observation = step.observation
    batch = memory.sample(400, beta=0.5)
    for row, identity in enumerate(batch.ids.tolist()):
        np.testing.assert_array_equal(batch.observation[row], shown[identity][0])
        np.testing.assert_array_equal(batch.next_observation[row], shown[identity][1])
        assert batch.terminated[row] == shown[identity][2]
    assert len(np.unique(batch.ids)) > 60
    game.close()


def test_learning_episodes_end_where_the_emulator_reports_a_lost_life():
    ours = AtariGame("Breakout", num_envs=2)
    ours.reset(4)
    theirs = ale_py.AtariVectorEnv(
        "breakout", 2, noop_max=0, reward_clipping=False, use_fire_reset=False, life_loss_info=True,
        autoreset_mode="SameStep",
    )  # fmt: skip
    theirs.reset(seed=np.array([spread_seed(4, 0, 0), spread_seed(4, 1, 0)]))
    rng = np.random.default_rng(1)
    ends = 0
    for _ in range(300):
        actions = rng.integers(0, 4, 2)
        step = ours.step(actions)
        observation, reward, terminated, truncated, _ = theirs.step(actions)
        np.testing.assert_array_equal(step.observation, observation)
        np.testing.assert_array_equal(step.reward, reward)
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        ends += terminated.sum()
    assert ends > 10
    ours.close()


def test_without_the_life_rule_only_the_game_itself_ends():
    game = AtariGame("Breakout", life_loss=False)
    game.reset(4)
    rng = np.random.default_rng(1)
    steps = [game.step(rng.integers(0, 4, 1)) for _ in range(260)]
    assert any(step.finished[0] for step in steps)
    assert all((step.terminated == step.finished).all() for step in steps)
    game.close()


def test_a_cut_game_shows_its_true_final_observation():
    cut, uncut = AtariGame("Pong", max_episode_steps=20), AtariGame("Pong")
    first = cut.reset(0)
    uncut.reset(0)
    for moment in range(1, 21):
        ours, theirs = cut.step(np.array([2])), uncut.step(np.array([2]))
        np.testing.assert_array_equal(ours.next_observation, theirs.next_observation)
        assert ours.truncated[0] == ours.finished[0] == (moment == 20)
        assert not ours.terminated[0]
    np.testing.assert_array_equal(ours.observation, first)
    assert ours.episode_length[0] == 20
    cut.close()
    uncut.close()


def test_a_state_is_exact_with_no_op_starts_sticky_actions_and_new_seeds(monkeypatch):
    monkeypatch.setattr(atari, "RESEED_STEPS", 60)
    options = {"num_envs": 2, "max_episode_steps": 170, "noop_max": 30, "sticky_actions": 0.25}
    game = AtariGame("Breakout", **options)
    game.reset(8)
    rng = np.random.default_rng(2)
    for _ in range(220):
        last = game.step(rng.integers(0, 4, 2))
    state = game.get_state()
    assert state["seedings"] == [1, 1]
    assert len(set(state["played_steps"])) == 2  # Environments of different ages are brought together.
    actions = rng.integers(0, 4, (60, 2))
    expected = [game.step(action) for action in actions]
    other = AtariGame("Breakout", **options)
    np.testing.assert_array_equal(other.set_state(state), last.observation)
    for action, step in zip(actions, expected, strict=True):
        again = other.step(action)
        np.testing.assert_array_equal(again.observation, step.observation)
        np.testing.assert_array_equal(again.next_observation, step.next_observation)
        np.testing.assert_array_equal(again.reward, step.reward)
        np.testing.assert_array_equal(again.terminated, step.terminated)
        np.testing.assert_array_equal(again.truncated, step.truncated)
        np.testing.assert_array_equal(again.episode_return, step.episode_return)
    game.close()
    other.close()


def test_a_state_that_plays_out_differently_is_refused():
    game = AtariGame("Breakout", sticky_actions=0.5)
    game.reset(0)
    for action in np.random.default_rng(0).integers(0, 4, (30, 1)):
        game.step(action)
    with pytest.raises(PserError, match="resume with the same ale-py and the same game settings"):
        AtariGame("Breakout").set_state(game.get_state())


@pytest.mark.parametrize(("noop_max", "resets"), [(0, 4), (3, 30)])
def test_games_begin_with_up_to_noop_max_idle_frames(noop_max, resets):
    game = AtariGame("Pong", noop_max=noop_max)
    game.reset(0)
    infos = [
        game._emulators._env.reset(options={"reset_mask": np.ones(1, np.bool_)})[1] for _ in range(resets)
    ]
    assert {int(info["episode_frame_number"][0]) for info in infos} == set(range(noop_max + 1))
    game.close()


def test_a_life_lost_at_the_limit_is_a_termination(monkeypatch):
    game = AtariGame("Breakout", max_episode_steps=1)
    game.reset(0)
    lost = Played(
        *[np.zeros(1)] * 2, over=np.array([False]), cut=np.array([True]), life_lost=np.array([True])
    )
    monkeypatch.setattr(game._emulators, "step", lambda actions: lost)
    step = game.step(np.array([0]))
    assert (step.terminated[0], step.truncated[0], step.finished[0]) == (True, False, True)
    game.close()


def test_actions_are_the_minimal_set_unless_all_are_asked_for():
    for name, full, actions in (("Breakout", False, 4), ("Pong", False, 6), ("Pong", True, 18)):
        game = AtariGame(name, full_action_set=full)
        assert game.num_actions == actions
        game.close()


def test_rewards_are_the_games_own():
    game = AtariGame("SpaceInvaders", num_envs=2)
    game.reset(0)
    rng = np.random.default_rng(0)
    assert max(game.step(rng.integers(0, 6, 2)).reward.max() for _ in range(150)) >= 5
    game.close()


def test_the_colour_screen_follows_the_game():
    eager, lazy = (AtariGame("Breakout", noop_max=30, max_episode_steps=30) for _ in range(2))
    eager.reset(3)
    lazy.reset(3)
    rng = np.random.default_rng(0)
    for _ in range(50):  # Past the end of the first game.
        action = rng.integers(0, 4, 1)
        image = eager.render()
        step = eager.step(action)
        lazy.step(action)
    assert image.shape == (210, 160, 3)
    assert image.dtype == np.uint8
    image = eager.render()
    np.testing.assert_array_equal(image, lazy.render())
    # The paddle stands where the agent's own, smaller screen shows it.
    small, large = step.observation[0, -1, 76, 5:-5], image[190, 10:-10].mean(axis=1)
    assert abs(_middle(small) - _middle(large)) < 0.03
    eager.close()
    lazy.close()


def _middle(row: np.ndarray) -> float:
    lit = np.flatnonzero(row > row.max() / 2)
    return float(lit.mean() / len(row))


def test_a_missing_ale_py_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(PserError, match=r"pip install 'pser\[atari\]'"):
        AtariGame("Pong")
