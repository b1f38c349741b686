"""The contract every family keeps, and the small parts they share."""

import dataclasses
import io
import json

import numpy as np
import pytest

from pser.env.game import Game, State, Step
from pser.env.make import make_game
from pser.env.names import no_such
from pser.env.seeds import spread_seed
from pser.env.tally import EpisodeTally
from pser.errors import PserError

GAMES = [
    ("gym:CartPole-v1", 3, 300, {}),
    ("gym:MountainCar-v0", 2, 300, {"max_episode_steps": 40}),
    ("gym:Acrobot-v1", 2, 300, {"max_episode_steps": 70}),
    ("minatar:asterix", 3, 300, {}),
    ("minatar:breakout", 3, 300, {"max_episode_steps": 12}),
    ("minatar:freeway", 2, 300, {"max_episode_steps": 100}),
    ("minatar:seaquest", 3, 300, {}),
    ("minatar:space_invaders", 2, 300, {}),
    ("atari:Breakout", 2, 100, {"max_episode_steps": 45}),
]
each_game = pytest.mark.parametrize(
    ("spec", "num_envs", "steps", "options"), GAMES, ids=[g[0] for g in GAMES]
)


def play(game: Game, steps: int, seed: int = 0) -> list[Step]:
    rng = np.random.default_rng(seed)
    return [game.step(rng.integers(0, game.num_actions, game.num_envs)) for _ in range(steps)]


def through_files(state: State) -> State:
    """The state as a checkpoint keeps it: JSON, and NumPy arrays without pickle."""
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        back = dict(loaded)
    rest = {key: value for key, value in state.items() if key not in arrays}
    return back | json.loads(json.dumps(rest, allow_nan=False))


def assert_same_steps(one: list[Step], other: list[Step]) -> None:
    for left, right in zip(one, other, strict=True):
        for field in dataclasses.fields(Step):
            np.testing.assert_array_equal(getattr(left, field.name), getattr(right, field.name), field.name)


@each_game
def test_every_step_keeps_the_contract(spec, num_envs, steps, options):
    game = make_game(spec, num_envs=num_envs, **options)
    observation = game.reset(1)
    shape = (num_envs, *game.observation.row_shape)
    assert observation.shape == shape
    returns, lengths, ends = np.zeros(num_envs), np.zeros(num_envs, int), 0
    for step in play(game, steps):
        assert step.next_observation.shape == step.observation.shape == shape
        assert step.next_observation.dtype == step.observation.dtype == game.observation.dtype
        assert step.reward.dtype == step.episode_return.dtype == np.float64
        assert step.terminated.dtype == step.truncated.dtype == step.finished.dtype == np.bool_
        assert step.episode_length.dtype == np.int64
        assert not (step.terminated & step.truncated).any()
        assert (step.finished <= (step.terminated | step.truncated)).all()
        assert (step.truncated <= step.finished).all()
        returns += step.reward
        lengths += 1
        on = ~step.finished
        np.testing.assert_array_equal(step.observation[on], step.next_observation[on])
        np.testing.assert_array_equal(step.episode_return, np.where(on, np.nan, returns))
        np.testing.assert_array_equal(step.episode_length, np.where(on, 0, lengths))
        returns[step.finished] = lengths[step.finished] = 0
        ends += step.finished.sum()
    assert ends
    assert game.frames_per_step == (4 if spec.startswith("atari") else 1)
    assert game.name == spec
    game.close()


@each_game
def test_a_state_continues_bit_for_bit_in_a_new_game(spec, num_envs, steps, options):
    game = make_game(spec, num_envs=num_envs, **options)
    assert game.exact_state
    game.reset(5)
    for moment in (0, 61):
        last = play(game, moment, seed=moment)
        state = game.get_state()
        before = json.dumps({key: np.asarray(value).tolist() for key, value in state.items()})
        expected = play(game, steps // 2, seed=9)
        # Playing on must not reach into a state already given.
        assert json.dumps({key: np.asarray(value).tolist() for key, value in state.items()}) == before
        other = make_game(spec, num_envs=num_envs, **options)
        observation = other.set_state(through_files(state))
        if last:
            np.testing.assert_array_equal(observation, last[-1].observation)
        assert_same_steps(play(other, steps // 2, seed=9), expected)
        other.close()
    game.close()


@each_game
def test_a_seed_repeats_the_game_and_another_seed_does_not(spec, num_envs, steps, options):
    game = make_game(spec, num_envs=num_envs, seed=3, **options)
    first = game.reset()
    played = play(game, 40)
    np.testing.assert_array_equal(game.reset(3), first)
    assert_same_steps(play(game, 40), played)
    if not spec.startswith("atari"):  # Without no-op starts and sticky actions Atari games have no chance.
        game.reset(4)
        with pytest.raises(AssertionError):
            assert_same_steps(play(game, 40), played)
    game.close()


def test_a_state_of_another_game_is_refused():
    game = make_game("minatar:breakout", num_envs=2)
    game.reset(0)
    with pytest.raises(PserError, match="minatar:breakout with 2 environments for minatar:breakout with 3"):
        make_game("minatar:breakout", num_envs=3).set_state(game.get_state())
    with pytest.raises(PserError, match="for minatar:freeway with 2"):
        make_game("minatar:freeway", num_envs=2).set_state(game.get_state())


@pytest.mark.parametrize("actions", [[0], [0, 0, 0], [0, 6], [-1, 0], [0.0, 1.0]])
def test_a_wrong_action_is_refused_and_changes_nothing(actions):
    game = make_game("minatar:breakout", num_envs=2)
    game.reset(0)
    before = game.get_state()
    with pytest.raises(PserError, match=r"action"):
        game.step(np.array(actions))
    after = game.get_state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_what_most_steps_share_cannot_be_written():
    game = make_game("minatar:breakout")
    game.reset(0)
    step = game.step(np.array([0]))
    for shared_array in (step.episode_return, step.episode_length, step.terminated, step.truncated):
        with pytest.raises(ValueError, match="read-only"):
            shared_array[0] = 1


def test_the_tally_reports_only_finished_games_and_starts_again():
    tally = EpisodeTally(2)
    tally.add(np.array([1.0, 2.0]), None)
    returns, lengths = tally.add(np.array([1.0, 2.0]), np.array([False, True]))
    np.testing.assert_array_equal(returns, [np.nan, 4.0])
    np.testing.assert_array_equal(lengths, [0, 2])
    returns, lengths = tally.add(np.array([1.0, 2.0]), np.array([True, True]))
    np.testing.assert_array_equal(returns, [3.0, 2.0])
    np.testing.assert_array_equal(lengths, [3, 1])


def test_seeds_of_runs_and_environments_do_not_meet():
    seeds = {spread_seed(run, env, time) for run in range(10) for env in range(10) for time in range(10)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_an_unknown_name_is_answered_with_near_ones():
    assert "did you mean SpaceInvaders" in str(no_such("game", "spaceinvader", ["Pong", "SpaceInvaders"]))
    assert "choose one of Pong, Boxing" in str(no_such("game", "zzz", ["Pong", "Boxing"]))
    many = str(no_such("game", "zzz", [f"Game{number}" for number in range(60)]))
    assert "choose one of the 60, such as Game0, Game1, Game2" in many
