"""The prioritized algorithms of stable-baselines3 and sb3-contrib, against the libraries' own."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import sb3_contrib
import stable_baselines3
import torch
from sb3_contrib.common.utils import quantile_huber_loss
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

import pser
from integrations.bare import Diary, assert_same_priorities
from pser.integrations import sb3
from pser.integrations.sb3.losses import quantile_huber

RULE = pser.PSER(alpha=0.6, rho=0.5, window=4, eta=0.3)
DISCRETE = ["DQN", "QRDQN"]
CONTINUOUS = ["DDPG", "TD3", "SAC", "TQC"]
EVERY = DISCRETE + CONTINUOUS


class Reach(gym.Env):
    """A point that should come to rest at 0; it terminates far away, and a time limit truncates it."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, discrete=False):
        self.action_space = gym.spaces.Discrete(3) if discrete else gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=2).astype(np.float32)
        return self.state, {}

    def step(self, action):
        push = float(np.ravel(action)[0]) - isinstance(self.action_space, gym.spaces.Discrete)
        speed = 0.9 * self.state[1] + 0.3 * push
        self.state = np.array([self.state[0] + 0.3 * speed, speed], np.float32)
        return self.state, -float(abs(self.state[0])), bool(abs(self.state[0]) > 2.5), False, {}


def stock(name):
    return getattr(sb3_contrib if name in ("QRDQN", "TQC") else stable_baselines3, name)


def envs(name, number=4):
    limited = {"discrete": name in DISCRETE}
    return make_vec_env(
        lambda **settings: gym.wrappers.TimeLimit(Reach(**settings), 17), number, seed=0, env_kwargs=limited
    )


def settings(name, **more):
    small = {"learning_starts": 60, "buffer_size": 800, "batch_size": 50, "seed": 0, "device": "cpu"}
    small |= {"policy_kwargs": {"net_arch": [8]}, "train_freq": 4, "gradient_steps": 2}
    if name == "QRDQN":
        small["policy_kwargs"] = {"net_arch": [8], "n_quantiles": 11}
    if name in ("DDPG", "TD3"):
        small["action_noise"] = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
    return {**small, **more}


def model(name, rule=RULE, number=4, buffer=None, **more):
    kwargs = {"prioritization": rule, **(buffer or {})}
    env = envs(name, number)
    return getattr(sb3, name)("MlpPolicy", env, **settings(name, replay_buffer_kwargs=kwargs, **more))


def weights_of(algorithm):
    return {key: value.clone() for key, value in algorithm.policy.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", EVERY)
def test_training_uses_the_priorities_in_four_environments_with_truncation(name):
    algorithm = model(name)
    algorithm.learn(2000)
    index = algorithm.replay_buffer.index
    index.check_invariants()
    assert algorithm.replay_buffer.timeouts.sum() > 0
    assert index.stats()["updates_applied"] == algorithm._n_updates * 50 > 0
    assert index.stats()["decayed_mass_seen"] > 0.0


@pytest.mark.parametrize("name", EVERY)
def test_weights_and_priorities_equal_those_of_a_bare_index_fed_the_same(name):
    algorithm = model(name)
    diary, dones, store = Diary(algorithm.replay_buffer.index), [], algorithm._store_transition

    def watched(replay_buffer, action, observation, reward, done, infos):
        dones.append(done.copy())
        store(replay_buffer, action, observation, reward, done, infos)

    algorithm._store_transition = watched
    algorithm.learn(600)
    firsts = [np.ones(4, bool), *dones[:-1]]
    bare = diary.replayed([(first, np.arange(4)) for first in firsts], seed=0)
    assert diary.updates == algorithm._n_updates > 50
    assert_same_priorities(algorithm.replay_buffer.index, bare)


class StockDraws:
    """SB3's own buffer reading its own arrays, told which rows to draw by a uniform `PriorityIndex`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.index = pser.PriorityIndex(self.buffer_size * self.n_envs, pser.Uniform(), self.n_envs, seed=0)

    def add(self, *args):
        super().add(*args)
        self.index.append(np.zeros(self.n_envs, bool))

    def sample(self, batch_size, env=None):
        ids, _ = self.index.sample(batch_size)
        with pytest.MonkeyPatch.context() as patch:  # SB3 draws the environments in there
            patch.setattr(np.random, "randint", lambda *args, **kwargs: ids % self.n_envs)
            return self._get_samples((ids // self.n_envs) % self.buffer_size, env=env)


class StockBuffer(StockDraws, ReplayBuffer):
    pass


class StockNStepBuffer(StockDraws, NStepReplayBuffer):
    pass


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("name", EVERY)
def test_uniform_draws_train_the_very_weights_of_the_librarys_own_class(name, n_steps):
    ours = model(name, pser.Uniform(), n_steps=n_steps)
    start = weights_of(ours)
    ours.learn(1200)
    returns = {"n_steps": 3, "gamma": 0.99} if n_steps > 1 else {}
    their = {"replay_buffer_class": StockNStepBuffer if n_steps > 1 else StockBuffer}
    theirs = stock(name)("MlpPolicy", envs(name), **settings(name, replay_buffer_kwargs=returns, **their))
    assert same(start, weights_of(theirs))
    theirs.learn(1200)
    assert ours.replay_buffer.full
    assert ours._n_updates == theirs._n_updates > 100
    assert not same(start, weights_of(ours))
    assert same(weights_of(ours), weights_of(theirs))


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(name):
    trained = []
    for seed in (0, 0, 1):
        algorithm = model(name, seed=seed)
        algorithm.learn(300)
        trained.append(weights_of(algorithm))
    assert same(trained[0], trained[1])
    assert not same(trained[0], trained[2])


def test_a_buffer_in_the_librarys_own_class_follows_its_seed():
    trained = []
    for _ in range(2):
        kwargs = {"prioritization": pser.Uniform()}
        more = {"replay_buffer_class": sb3.PrioritizedReplayBuffer, "replay_buffer_kwargs": kwargs}
        algorithm = stable_baselines3.SAC("MlpPolicy", envs("SAC"), **settings("SAC", **more))
        algorithm.learn(200)
        trained.append(weights_of(algorithm))
    assert same(*trained)


def test_set_random_seed_reaches_the_draws():
    algorithm = model("DQN", seed=None)
    algorithm.learn(200)
    drawn = []
    for seed in (7, 7, 8):
        algorithm.set_random_seed(seed)
        drawn.append(algorithm.replay_buffer.sample(50).ids.tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def fixed_batch(name, rule=None, **more):
    """A model that has learned a little, and one batch that `sample` gives from now on."""
    algorithm = model(name, pser.PER(eps=0.01) if rule is None else rule, **more)
    algorithm.learn(200)
    batch = algorithm.replay_buffer.sample(50)
    algorithm.replay_buffer.sample = lambda *args, **kwargs: batch
    return algorithm, batch


def test_the_priority_of_sac_is_the_mean_td_error_of_its_critics():
    algorithm, batch = fixed_batch("SAC", ent_coef=0.2)
    torch.manual_seed(3)
    algorithm.actor.action_log_prob(batch.observations)  # as the training step draws
    with torch.no_grad():
        actions, log = algorithm.actor.action_log_prob(batch.next_observations)
        after = torch.cat(algorithm.critic_target(batch.next_observations, actions), dim=1)
        soft = after.min(dim=1, keepdim=True)[0] - 0.2 * log.reshape(-1, 1)
        target = batch.rewards + 0.99 * (1 - batch.dones) * soft
        deltas = [
            (target - value)[:, 0].abs() for value in algorithm.critic(batch.observations, batch.actions)
        ]
    assert len(deltas) == 2
    torch.manual_seed(3)
    algorithm.train(1, 50)
    expected = np.mean([delta.numpy() for delta in deltas], axis=0) + 0.01
    np.testing.assert_allclose(algorithm.replay_buffer.index.priority(batch.ids), expected, rtol=1e-4)


@pytest.mark.parametrize("name", DISCRETE)
def test_the_priority_of_a_discrete_algorithm_is_the_td_error_of_its_values(name):
    algorithm, batch = fixed_batch(name)
    nets = [
        getattr(algorithm, f"{'q' if name == 'DQN' else 'quantile'}_net{which}") for which in ("", "_target")
    ]
    with torch.no_grad():
        now, after = nets[0](batch.observations), nets[1](batch.next_observations)
    if name == "QRDQN":
        now, after = now.mean(dim=1), after.mean(dim=1)
    target = batch.rewards + 0.99 * (1 - batch.dones) * after.amax(dim=1, keepdim=True)
    delta = (target - now.gather(1, batch.actions)).abs()[:, 0]
    algorithm.train(1, 50)
    priorities = algorithm.replay_buffer.index.priority(batch.ids)
    np.testing.assert_allclose(priorities, delta.numpy() + 0.01, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_rows_without_weight_teach_the_critic_nothing(name):
    """Rows of weight 0 may hold anything: the critic's gradient is that of the other rows."""
    gradients = []
    for nonsense in (0.0, 1e3):
        algorithm, batch = fixed_batch(name)
        batch.weights[:25] = 0.0
        batch.rewards[:25] += nonsense
        algorithm.replay_buffer.drawn = batch
        torch.manual_seed(0)
        algorithm.train(1, 50)
        critic = getattr(algorithm, "critic", algorithm.policy)
        gradients.append([parameter.clone() for parameter in critic.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


@pytest.mark.parametrize("shape", [(5, 7), (5, 2, 7)])
@pytest.mark.parametrize("summed", [True, False])
def test_the_mean_of_the_rows_quantile_losses_is_the_librarys_loss(shape, summed):
    generator = torch.Generator().manual_seed(0)
    current = 3 * torch.randn(shape, generator=generator)
    target = 3 * torch.randn((5, 1, 4) if len(shape) == 3 else (5, 4), generator=generator)
    rows = quantile_huber(current, target, sum_over_quantiles=summed)
    assert rows.shape == (5,)
    torch.testing.assert_close(
        rows.mean(), quantile_huber_loss(current, target, sum_over_quantiles=summed), rtol=1e-6, atol=0
    )


def test_n_step_returns_stop_at_episode_ends_and_where_nothing_happened_yet():
    buffer = sb3.PrioritizedReplayBuffer(
        12,
        gym.spaces.Box(-np.inf, np.inf, (1,), np.float32),
        gym.spaces.Discrete(2),
        "cpu",
        2,
        prioritization=pser.Uniform(),
        seed=0,
        n_steps=3,
        gamma=0.5,
    )
    story = []
    for step in range(9):
        if step == 7:
            buffer.end_episodes()  # the environments were reset from outside
        done = np.array([step == 4, False])
        observation = np.array([[step], [100 + step]], np.float32)
        infos = [{"TimeLimit.truncated": bool(done[0])}, {}]
        buffer.add(observation, observation + 0.5, np.zeros(2), 1.0 + np.arange(2) + step, done, infos)
        story.append(done)
    batch = buffer.sample(200)
    assert set(batch.ids) == set(range(6, 18))
    for row, number in enumerate(batch.ids):
        step, env = divmod(int(number), 2)
        end = next(s for s in range(step, 9) if story[s][env] or s == 6 or s == 8 or s == step + 2)
        rewards = [1.0 + env + s for s in range(step, end + 1)]
        assert batch.rewards[row, 0] == sum(r * 0.5**k for k, r in enumerate(rewards))
        assert batch.discounts[row, 0] == 0.5 ** len(rewards)
        assert batch.next_observations[row, 0] == 100 * env + end + 0.5
        assert batch.dones[row, 0] == 0.0


def test_n_step_returns_and_one_array_for_both_observations_exclude_each_other():
    with pytest.raises(pser.PserError, match="leave one out"):
        model("DQN", n_steps=3, optimize_memory_usage=True)


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_model_and_buffer_go_on_in_a_model_without_a_buffer(name, tmp_path):
    algorithm = model(name)
    algorithm.learn(200)
    algorithm.save(tmp_path / "model")
    algorithm.save_replay_buffer(tmp_path / "buffer")
    again = getattr(sb3, name).load(tmp_path / "model", env=algorithm.get_env(), device="cpu")
    assert same(weights_of(algorithm), weights_of(again))
    again.replay_buffer = None
    again.load_replay_buffer(tmp_path / "buffer")
    assert_same_priorities(algorithm.replay_buffer.index, again.replay_buffer.index)
    np.testing.assert_array_equal(algorithm.replay_buffer.sample(50).ids, again.replay_buffer.sample(50).ids)
    again.learn(100)


def test_a_saved_buffer_of_other_environments_is_refused_by_a_model_without_one(tmp_path):
    model("DQN").save_replay_buffer(tmp_path / "buffer")
    other = model("DQN", number=2)
    other.replay_buffer = None
    with pytest.raises(pser.PserError, match="the saved buffer has n_envs=4, this model 2"):
        other.load_replay_buffer(tmp_path / "buffer")
    assert other.replay_buffer is None


def test_a_batch_is_a_batch_of_the_library():
    _algorithm, batch = fixed_batch("DQN")
    assert isinstance(batch, stable_baselines3.common.type_aliases.ReplayBufferSamples)
    assert len(batch) == 6
    assert batch.weights.shape == (50, 1)


class Count(BaseCallback):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def _on_step(self):
        self.seen.append(self.num_timesteps)
        return True


def test_callbacks_run_as_ever(tmp_path):
    seen = []
    evaluation = EvalCallback(envs("SAC", 1), eval_freq=20, n_eval_episodes=1, verbose=0, log_path=tmp_path)
    algorithm = model("SAC")
    algorithm.learn(160, callback=[evaluation, Count(seen)], log_interval=1)
    assert len(seen) == 40
    assert (tmp_path / "evaluations.npz").exists()


def test_a_class_whose_training_cannot_be_weighted_says_so():
    class Other(sb3.Prioritized, stable_baselines3.DQN):
        pass

    class Strange(stable_baselines3.DQN):
        def train(self, gradient_steps, batch_size=100):
            pass

    class StrangePrioritized(sb3.Prioritized, Strange):
        pass

    kwargs = settings("DQN", replay_buffer_kwargs={"prioritization": RULE})
    Other("MlpPolicy", envs("DQN"), **kwargs).learn(100)
    with pytest.raises(pser.PserError, match="weigh the loss in a train of your own"):
        StrangePrioritized("MlpPolicy", envs("DQN"), **kwargs)
