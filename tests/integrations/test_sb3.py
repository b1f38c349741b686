"""The stable-baselines3 adapter, against the library itself."""

import importlib
import pickle

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import pser
from integrations.bare import Diary, assert_same_priorities, retained
from pser.integrations import _shared, sb3

RULE = pser.PSER(alpha=0.6, rho=0.5, window=4, eta=0.3)
BOX = spaces.Box(-np.inf, np.inf, (1,), np.float32)
SMALL = {"learning_starts": 100, "buffer_size": 1000, "policy_kwargs": {"net_arch": [16]}}
SMALL |= {"seed": 0, "device": "cpu"}


def model(n_envs=4, rule=RULE, **settings):
    env = make_vec_env("CartPole-v1", n_envs=n_envs, seed=0, env_kwargs={"max_episode_steps": 15})
    kwargs = {**SMALL, "replay_buffer_kwargs": {"prioritization": rule}, **settings}
    return sb3.DQN("MlpPolicy", env, **kwargs)


def buffer(steps=8, n_envs=2, rule=RULE, **settings):
    return sb3.PrioritizedReplayBuffer(
        steps * n_envs, BOX, spaces.Discrete(2), "cpu", n_envs, prioritization=rule, seed=0, **settings
    )


def add(memory, step, done=None, truncated=None):
    """A step whose numbers tell where they belong: observation 10·step + environment, next one half more."""
    envs = memory.n_envs
    done = np.zeros(envs, bool) if done is None else np.array(done)
    truncated = np.zeros(envs, bool) if truncated is None else np.array(truncated)
    observation = (10.0 * step + np.arange(envs, dtype=np.float32)).reshape(envs, 1)
    infos = [{"TimeLimit.truncated": bool(flag)} for flag in truncated]
    reward = 1000.0 + observation[:, 0]
    memory.add(observation, observation + 0.5, np.full(envs, step % 2), reward, done | truncated, infos)


def priorities_by_env(memory):
    """Priorities as (step, environment), oldest first."""
    return memory.index.priority(retained(memory.index)).reshape(-1, memory.n_envs)


def test_a_training_run_with_four_environments_completes():
    dqn = model(train_freq=4, gradient_steps=4, target_update_interval=50)
    dqn.learn(3000)
    index = dqn.replay_buffer.index
    index.check_invariants()
    assert index.next_id == dqn.num_timesteps >= 3000
    assert index.stats()["updates_applied"] == dqn._n_updates * dqn.batch_size
    assert index.stats()["decayed_mass_seen"] > 0.0


def test_priorities_equal_those_of_a_bare_index_fed_the_same_transitions():
    dqn = model(train_freq=4, gradient_steps=2)
    diary = Diary(dqn.replay_buffer.index)
    dones, store = [], dqn._store_transition

    def watched(replay_buffer, action, observation, reward, done, infos):
        dones.append(done.copy())
        store(replay_buffer, action, observation, reward, done, infos)

    dqn._store_transition = watched
    dqn.learn(1500)
    firsts = [np.ones(4, bool), *dones[:-1]]
    bare = diary.replayed([(first, np.arange(4)) for first in firsts], seed=0)
    assert diary.updates > 100
    assert_same_priorities(dqn.replay_buffer.index, bare)


@pytest.mark.parametrize("end", ["done", "truncated"])
def test_decay_stops_where_an_episode_was(end):
    memory = buffer(rule=pser.PSER(rho=0.5, window=4, eta=0.0, eps=0.0))
    for step in range(6):
        add(memory, step, **({end: [True, False]} if step == 2 else {}))
    memory.update_priorities(np.arange(12), np.full(12, 1e-3))
    memory.update_priorities(np.array([8, 9]), np.array([0.8, 0.8]))
    ended, running = priorities_by_env(memory).T
    np.testing.assert_allclose(ended, [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3])
    np.testing.assert_allclose(running, [0.05, 0.1, 0.2, 0.4, 0.8, 1e-3])


def test_a_batch_holds_the_transitions_its_ids_name_also_after_wrapping():
    memory = buffer(steps=7, n_envs=3)
    for step in range(20):
        add(memory, step, done=[step % 5 == 4, False, False], truncated=[False, step % 3 == 2, False])
    batch = memory.sample(200)
    steps, envs = batch.ids // 3, batch.ids % 3
    assert set(steps) == set(range(13, 20))
    expected = (10.0 * steps + envs).reshape(-1, 1)
    np.testing.assert_array_equal(batch.observations, expected)
    np.testing.assert_array_equal(batch.next_observations, expected + 0.5)
    np.testing.assert_array_equal(batch.rewards, expected + 1000.0)
    np.testing.assert_array_equal(batch.actions, (steps % 2).reshape(-1, 1))
    # A time limit is no termination: the target bootstraps from the true last observation.
    np.testing.assert_array_equal(batch.dones[:, 0], (envs == 0) & (steps % 5 == 4))
    assert batch.weights.shape == (200, 1)


def test_with_one_array_for_both_observations_no_overwritten_one_is_sampled():
    memory = buffer(steps=6, n_envs=2, optimize_memory_usage=True)
    for step in range(15):
        observation = np.array([[10.0 * step], [10.0 * step + 1]], np.float32)
        memory.add(observation, observation + 10, np.zeros(2), np.zeros(2), np.zeros(2, bool), [{}, {}])
        if step:
            batch = memory.sample(50)
            expected = (10.0 * (batch.ids // 2) + batch.ids % 2).reshape(-1, 1)
            np.testing.assert_array_equal(batch.observations, expected)
            np.testing.assert_array_equal(batch.next_observations, expected + 10)
    assert len(memory.index) == 10


def test_one_array_needs_two_steps():
    with pytest.raises(pser.PserError, match="at least 2 steps"):
        buffer(steps=1, optimize_memory_usage=True)


def test_priorities_are_the_td_errors_of_the_networks():
    dqn = model(rule=pser.PER(eps=0.01), learning_rate=0.0, gradient_steps=1, train_freq=1)
    dqn.learn(400)
    memory = dqn.replay_buffer
    with torch.no_grad():
        for parameter in dqn.q_net_target.parameters():
            parameter.mul_(1.5)
    batch = memory.sample(64)
    memory.sample = lambda *args, **kwargs: batch
    dqn.train(1, 64)
    steps, envs = batch.ids // 4, batch.ids % 4
    with torch.no_grad():
        q = dqn.q_net(torch.as_tensor(memory.observations[steps, envs])).numpy()
        next_q = dqn.q_net_target(torch.as_tensor(memory.next_observations[steps, envs])).numpy()
    terminated = memory.dones[steps, envs] * (1 - memory.timeouts[steps, envs])
    target = memory.rewards[steps, envs] + 0.99 * (1 - terminated) * next_q.max(axis=1)
    delta = target - q[np.arange(64), memory.actions[steps, envs, 0]]
    np.testing.assert_allclose(memory.index.priority(batch.ids), np.abs(delta) + 0.01, rtol=1e-4)


def test_weights_go_into_the_loss():
    dqn = model(learning_starts=1)
    dqn.learn(200)
    before = [parameter.clone() for parameter in dqn.q_net.parameters()]
    memory, sample = dqn.replay_buffer, dqn.replay_buffer.sample

    def weightless(*args, **kwargs):
        batch = sample(*args, **kwargs)
        batch.weights.zero_()
        return batch

    memory.sample = weightless
    dqn.policy.optimizer = torch.optim.SGD(dqn.q_net.parameters(), lr=1.0)
    dqn.train(3, 32)
    assert all(torch.equal(old, new) for old, new in zip(before, dqn.q_net.parameters(), strict=True))
    del memory.sample
    dqn.train(1, 32)
    assert not all(torch.equal(old, new) for old, new in zip(before, dqn.q_net.parameters(), strict=True))


def test_learning_again_from_a_reset_ends_the_running_episodes():
    dqn = model(n_envs=1)
    dqn.learn(40)
    assert not dqn.replay_buffer._first[0]
    dqn._setup_learn(10, reset_num_timesteps=False)
    assert not dqn.replay_buffer._first[0]
    dqn._setup_learn(10, reset_num_timesteps=True)
    assert dqn.replay_buffer._first[0]


def test_a_saved_buffer_goes_on_bit_for_bit(tmp_path):
    dqn = model(train_freq=4, gradient_steps=2)
    dqn.learn(600)
    dqn.save_replay_buffer(tmp_path / "buffer")
    other = model(train_freq=4, gradient_steps=2)
    other.load_replay_buffer(tmp_path / "buffer", truncate_last_traj=False)
    assert_same_priorities(dqn.replay_buffer.index, other.replay_buffer.index)
    for one, again in [(dqn.replay_buffer.sample(32), other.replay_buffer.sample(32))]:
        np.testing.assert_array_equal(one.ids, again.ids)
        assert torch.equal(one.observations, again.observations)
        assert torch.equal(one.weights, again.weights)
    np.testing.assert_array_equal(other.replay_buffer._first, dqn.replay_buffer._first)
    other.learn(200)


def test_loading_ends_the_running_episodes_unless_told_otherwise(tmp_path):
    dqn = model()
    dqn.learn(44)
    assert not dqn.replay_buffer._first.all()
    dqn.save_replay_buffer(tmp_path / "buffer")
    dqn.load_replay_buffer(tmp_path / "buffer")
    assert dqn.replay_buffer._first.all()


def test_a_whole_model_can_be_saved_and_loaded(tmp_path):
    dqn = model(
        replay_buffer_kwargs={"prioritization": RULE, "beta": pser.Anneal(start=0.4, end=1.0, steps=99)}
    )
    dqn.learn(300)
    dqn.save(tmp_path / "model")
    again = sb3.DQN.load(tmp_path / "model", env=dqn.get_env(), device="cpu")
    assert again.replay_buffer.index.prioritization == RULE
    assert again.replay_buffer.beta == dqn.replay_buffer.beta
    again.learn(200)


@pytest.mark.parametrize(
    ("settings", "what"), [({"n_envs": 2}, "n_envs"), ({"buffer_size": 2000}, "buffer_size")]
)
def test_a_saved_buffer_of_another_size_is_refused_and_nothing_changes(tmp_path, settings, what):
    dqn = model()
    dqn.save_replay_buffer(tmp_path / "buffer")
    other = model(**settings)
    before = other.replay_buffer
    with pytest.raises(pser.PserError, match=f"{what}=.*make the model with the saved settings"):
        other.load_replay_buffer(tmp_path / "buffer")
    assert other.replay_buffer is before


def test_a_saved_buffer_without_priorities_is_refused(tmp_path):
    with open(tmp_path / "plain.pkl", "wb") as file:
        pickle.dump(ReplayBuffer(10, BOX, spaces.Discrete(2), "cpu"), file)
    with pytest.raises(pser.PserError, match="without priorities"):
        model().load_replay_buffer(tmp_path / "plain")


def test_damaged_priorities_are_refused():
    memory = buffer()
    add(memory, 0)
    state = memory.__getstate__()
    damaged = bytearray(state["index"])
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(pser.DamagedFileError):
        buffer().__setstate__({**state, "index": bytes(damaged)})


def test_the_seed_of_the_model_seeds_its_buffer():
    batches = []
    for seed in (0, 0, 1):
        dqn = model(seed=seed)
        for step in range(100):
            add_step(dqn.replay_buffer, step)
        batches.append(dqn.replay_buffer.sample(64).ids.tolist())
    assert batches[0] == batches[1] != batches[2]


def add_step(memory, step):
    observation = np.full((4, 4), step, np.float32)
    memory.add(observation, observation, np.zeros(4), np.zeros(4), np.zeros(4, bool), [{}] * 4)


def test_beta_can_follow_a_schedule_of_transitions_added():
    memory = buffer(steps=100, n_envs=1, beta=pser.Anneal(start=0.0, end=1.0, steps=50))
    for step in range(50):
        add(memory, step)
        memory.update_priorities(np.array([step]), np.array([1.0 + step % 3]))
        if step == 0:
            assert (memory.sample(8).weights == 1.0).all()
    batch = memory.sample(32)
    probabilities = memory.index.probabilities(batch.ids)
    np.testing.assert_allclose(batch.weights[:, 0], probabilities.min() / probabilities, rtol=1e-6)


def test_observations_may_be_dicts():
    class Doubled(gym.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = spaces.Dict({"a": env.observation_space, "b": spaces.Box(-1, 1, (2,))})

        def observation(self, observation):
            return {"a": observation, "b": np.clip(observation[:2], -1, 1)}

    env = make_vec_env("CartPole-v1", n_envs=4, seed=0, wrapper_class=Doubled)
    dqn = sb3.DQN("MultiInputPolicy", env, replay_buffer_kwargs={"prioritization": RULE}, **SMALL)
    assert isinstance(dqn.replay_buffer, sb3.PrioritizedDictReplayBuffer)
    dqn.learn(400)
    batch = dqn.replay_buffer.sample(16)
    steps, envs = batch.ids // 4, batch.ids % 4
    for key in "ab":
        np.testing.assert_array_equal(
            batch.observations[key], dqn.replay_buffer.observations[key][steps, envs]
        )
        np.testing.assert_array_equal(
            batch.next_observations[key], dqn.replay_buffer.next_observations[key][steps, envs]
        )
    assert dqn.replay_buffer.index.stats()["updates_applied"] > 0


def test_normalized_environments_normalize_the_batch():
    env = VecNormalize(make_vec_env("CartPole-v1", n_envs=4, seed=0))
    dqn = sb3.DQN("MlpPolicy", env, replay_buffer_kwargs={"prioritization": RULE}, **SMALL)
    dqn.learn(400)
    raw, normalized = dqn.replay_buffer, dqn.replay_buffer.sample(16, env=env)
    steps, envs = normalized.ids // 4, normalized.ids % 4
    expected = env.normalize_obs(raw.observations[steps, envs])
    np.testing.assert_allclose(normalized.observations, expected, rtol=1e-6)
    assert not np.allclose(normalized.observations, raw.observations[steps, envs])


def test_reset_forgets_all():
    memory = buffer()
    add(memory, 0)
    memory.update_priorities(np.array([0]), torch.tensor([[5.0]]))
    memory.reset()
    assert (len(memory.index), memory.size(), memory.index.max_priority) == (0, 0, 1.0)
    add(memory, 1)
    assert memory.sample(4).observations[0, 0] in (10.0, 11.0)


def test_a_missing_prioritization_says_how_to_give_one():
    with pytest.raises(pser.PserError, match=r"replay_buffer_kwargs=dict\(prioritization=pser.PSER\(\)\)"):
        model(replay_buffer_kwargs={})


def test_a_buffer_without_priorities_says_which_to_use():
    with pytest.raises(pser.PserError, match=r"sb3\.PrioritizedReplayBuffer"):
        model(replay_buffer_class=ReplayBuffer, replay_buffer_kwargs={})


def test_a_dict_space_in_the_plain_buffer_names_the_right_one():
    with pytest.raises(pser.PserError, match="use PrioritizedDictReplayBuffer"):
        sb3.PrioritizedReplayBuffer(10, spaces.Dict({"a": BOX}), spaces.Discrete(2), prioritization=RULE)


def test_an_algorithm_that_updates_no_priorities_is_noticed_at_once():
    env = make_vec_env("CartPole-v1", n_envs=4, seed=0)
    plain = stable_baselines3.DQN(
        "MlpPolicy",
        env,
        replay_buffer_class=sb3.PrioritizedReplayBuffer,
        replay_buffer_kwargs={"prioritization": RULE},
        train_freq=1,
        **SMALL,
    )
    with pytest.warns(UserWarning, match=r"the class of the same name in pser.integrations.sb3"):
        plain.learn(108)
    assert plain._n_updates == 2


@pytest.mark.parametrize("found", ["1.8.0", "2.9.1", "2.10.0", "3.0.0a1"])
@pytest.mark.parametrize("library", ["stable-baselines3", "sb3-contrib"])
def test_an_unsupported_version_says_what_to_install(monkeypatch, library, found):
    module = importlib.import_module(
        "pser.integrations.sb3" + (".contrib" if library == "sb3-contrib" else "")
    )
    monkeypatch.setattr(_shared, "version", lambda name: found)
    with pytest.raises(pser.PserError, match=rf"got {found}: pip install '{library}>=2.9.2,<2.10'"):
        importlib.reload(module)


def test_a_missing_library_says_what_to_install():
    with pytest.raises(ModuleNotFoundError, match="pip install 'no-such-library>=1,<2'"):
        _shared.require_version("no-such-library", "1", "2")
