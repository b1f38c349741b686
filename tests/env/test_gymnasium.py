"""Gymnasium environments against a plain loop over Gymnasium."""

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from pser.env.gymnasium import GymGame
from pser.env.seeds import spread_seed
from pser.errors import PserError
from pser.spec import Array


class Corridor(gymnasium.Env[np.ndarray, int]):
    """Walk right with action 5, left with action 4; its observation holds where it is and a random mark."""

    action_space = gymnasium.spaces.Discrete(2, start=4)

    def __init__(self, dtype: Any = np.uint8) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (2,), dtype)
        self.at = self.mark = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.mark = 0, int(self.np_random.integers(256))
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert action in (4, 5)
        self.at += 1 if action == 5 else 0
        return self._seen(), float(self.at), self.at == 3, False, {}

    def _seen(self) -> np.ndarray:
        return np.array([self.at, self.mark], self.observation_space.dtype)


@pytest.fixture(autouse=True)
def corridor():
    gymnasium.register("pser-test/Corridor-v0", Corridor, max_episode_steps=5)
    gymnasium.register("pser-test/Corridor64-v0", Corridor, kwargs={"dtype": np.float64})
    yield
    del gymnasium.registry["pser-test/Corridor-v0"], gymnasium.registry["pser-test/Corridor64-v0"]


def test_steps_are_those_of_the_environment_itself():
    game = GymGame("CartPole-v1", num_envs=2)
    assert game.observation == Array((4,), np.float32)
    observation = game.reset(7)
    envs = [gymnasium.make("CartPole-v1") for _ in range(2)]
    for number, env in enumerate(envs):
        np.testing.assert_array_equal(observation[number], env.reset(seed=spread_seed(7, number, 0))[0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        actions = rng.integers(0, 2, 2)
        step = game.step(actions)
        for number, env in enumerate(envs):
            seen, reward, terminated, truncated, _ = env.step(actions[number])
            np.testing.assert_array_equal(step.next_observation[number], seen)
            assert step.reward[number] == reward
            assert step.terminated[number] == terminated
            assert step.truncated[number] == truncated
            if terminated or truncated:
                seen, _ = env.reset()
            np.testing.assert_array_equal(step.observation[number], seen)


def test_the_time_limit_truncates_with_the_true_final_observation():
    game, uncut = GymGame("MountainCar-v0"), GymGame("MountainCar-v0", max_episode_steps=1000)
    game.reset(0)
    uncut.reset(0)
    for moment in range(1, 201):
        step, other = game.step(np.array([1])), uncut.step(np.array([1]))
        np.testing.assert_array_equal(step.next_observation, other.next_observation)
        assert step.truncated[0] == (moment == 200)
    assert not step.terminated[0]
    assert not np.array_equal(step.observation, step.next_observation)
    assert (step.episode_return[0], step.episode_length[0]) == (-200.0, 200)


def test_an_end_on_the_last_allowed_step_is_a_termination():
    game = GymGame("pser-test/Corridor-v0", max_episode_steps=3)
    game.reset(0)
    for _ in range(3):
        step = game.step(np.array([1]))
    assert (step.terminated[0], step.truncated[0], step.finished[0]) == (True, False, True)


def test_actions_count_from_zero_wherever_the_space_starts():
    game = GymGame("pser-test/Corridor-v0", num_envs=2)
    assert game.num_actions == 2
    game.reset(0)
    step = game.step(np.array([0, 1]))
    np.testing.assert_array_equal(step.observation[:, 0], [0, 1])


def test_an_unknown_environment_starts_fresh_episodes_when_resumed():
    game = GymGame("pser-test/Corridor-v0", num_envs=3)
    assert not game.exact_state
    first = game.reset(0)
    for _ in range(4):
        game.step(np.array([1, 1, 0]))
    state = game.get_state()
    observation = game.set_state(state)
    np.testing.assert_array_equal(observation[:, 0], 0)
    assert not np.array_equal(observation[:, 1], first[:, 1])  # Not the episodes of the beginning once more.
    np.testing.assert_array_equal(game.set_state(state), observation)
    for _ in range(3):
        step = game.step(np.array([1, 1, 1]))
    np.testing.assert_array_equal(step.episode_length, 3)


def test_a_wrapper_with_unknown_state_is_not_called_exact(monkeypatch):
    assert GymGame("CartPole-v1").exact_state
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "additional_wrappers", ())
    spec = gymnasium.make("CartPole-v1").spec
    wrapped = gymnasium.wrappers.FrameStackObservation(gymnasium.make(spec), 2).spec
    wrapped.id = "pser-test/StackedCartPole-v0"
    gymnasium.registry[wrapped.id] = wrapped
    try:
        assert not GymGame(wrapped.id).exact_state
    finally:
        del gymnasium.registry[wrapped.id]


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPool-v1", "there is no Gymnasium id 'CartPool-v1': did you mean CartPole-v1"),
        ("Pendulum-v1", "discrete actions, but gym:Pendulum-v1 has Box"),
        ("FrozenLake-v1", "Box of float32 or uint8, but gym:FrozenLake-v1 has Discrete"),
        ("pser-test/Corridor64-v0", "Box of float32 or uint8"),
        ("no_such_module:CartPole-v1", "names a module that cannot be imported: No module"),
    ],
)
def test_games_that_cannot_be_used_are_one_line(env_id, message):
    with pytest.raises(PserError, match=message) as caught:
        GymGame(env_id)
    assert "\n" not in str(caught.value)


def test_the_screen_is_drawn_in_colour():
    pytest.importorskip("pygame")
    game = GymGame("CartPole-v1", num_envs=2)
    game.reset(0)
    image = game.render()
    assert image.shape == (400, 600, 3)
    assert image.dtype == np.uint8
    assert image.std() > 0
    game.close()


def test_a_screen_that_cannot_be_drawn_is_one_line(monkeypatch):
    game = GymGame("pser-test/Corridor-v0")
    game.reset(0)
    with pytest.raises(PserError, match="no rgb_array mode"):
        game.render()
    monkeypatch.setitem(sys.modules, "pygame", None)
    game = GymGame("CartPole-v1")
    game.reset(0)
    with pytest.raises(PserError, match="pygame is not installed"):
        game.render()


def test_a_game_that_needs_another_package_says_in_one_line_what_to_install(tmp_path, monkeypatch):
    lines = [
        "from gymnasium.error import DependencyNotInstalled",
        "raise DependencyNotInstalled('Box2D is not installed:\\npip install gymnasium[box2d]')",
    ]
    (tmp_path / "pser_test_lander.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    gymnasium.register("pser-test/Lander-v0", "pser_test_lander:Lander")
    message = "^Gymnasium cannot make 'pser-test/Lander-v0': Box2D is not installed: pip install gymnasium"
    with pytest.raises(PserError, match=message):
        GymGame("pser-test/Lander-v0")
    del gymnasium.registry["pser-test/Lander-v0"]


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "PongNoFrameskip-v4", "Pong-v4"])
def test_an_atari_id_of_gymnasium_is_told_its_name_here(env_id, monkeypatch):
    pytest.importorskip("ale_py", reason="the names of Atari games come with it")
    monkeypatch.delitem(gymnasium.registry, env_id, raising=False)
    with pytest.raises(PserError, match=r"is an Atari game: write atari:Pong$"):
        GymGame(env_id)
