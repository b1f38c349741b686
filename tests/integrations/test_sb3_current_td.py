"""CurrentTD in stable-baselines3: new transitions enter with the TD error that the algorithm's networks give them."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch
from stable_baselines3.common.vec_env import VecNormalize

import pser
from integrations.bare import assert_same_priorities
from integrations.test_sb3_algorithms import EVERY, RULE, envs, model, settings
from integrations.test_sb3_her import model as goal_model
from pser.errors import PserError
from pser.integrations import sb3

TD = {"initial": "td"}


def play_only(name, **more):
    """A model that has played 304 steps and learned nothing; its policy draws no actions, for SAC and TQC."""
    algorithm = model(name, buffer=TD, learning_starts=10**6, **more)
    if name in ("SAC", "TQC"):
        mean = algorithm.actor.forward
        algorithm.actor.action_log_prob = lambda observation: (
            mean(observation, True),
            0.1 * observation[:, 0],
        )
    algorithm.learn(300)
    return algorithm


def td_errors_by_hand(name, algorithm, row):
    """One transition's |δ|, a critic at a time, in plain numbers."""
    observation, following, action, reward, terminated = row
    observation, following = (torch.as_tensor(one)[None] for one in (observation, following))
    policy = algorithm.policy
    if name == "DQN":
        following_value = max(policy.q_net_target(following)[0].tolist())
        taken = [policy.q_net(observation)[0, int(action[0])].item()]
    elif name == "QRDQN":
        quantiles = policy.quantile_net_target(following)[0].tolist()  # (quantiles, actions)
        following_value = max(np.mean([row[number] for row in quantiles]) for number in range(3))
        taken = [np.mean([row[int(action[0])] for row in policy.quantile_net(observation)[0].tolist()])]
    else:
        action = torch.as_tensor(action)[None]
        if name in ("DDPG", "TD3"):
            following_value = min(
                critic.item() for critic in policy.critic_target(following, policy.actor_target(following))
            )
        else:
            alpha = torch.exp(algorithm.log_ent_coef).item()
            drawn = policy.actor(following, True)
            bonus = alpha * 0.1 * following[0, 0].item()
            if name == "SAC":
                following_value = min(one.item() for one in policy.critic_target(following, drawn)) - bonus
            else:
                every = sorted(policy.critic_target(following, drawn)[0].flatten().tolist())
                kept = every[: len(every) - 2 * algorithm.top_quantiles_to_drop_per_net]
                following_value = np.mean(kept) - bonus
        current = policy.critic(observation, action)
        taken = [one.item() for one in current] if name != "TQC" else current[0].mean(dim=1).tolist()
    target = reward + (0.0 if terminated else algorithm.gamma * following_value)
    return np.mean([abs(target - one) for one in taken])


@pytest.mark.parametrize("name", EVERY)
@torch.no_grad()
def test_new_transitions_enter_with_their_td_error_which_decays(name):
    with torch.enable_grad():
        algorithm = play_only(name)
    buffer = algorithm.replay_buffer
    bare = pser.PriorityIndex(buffer.index.capacity, RULE, 4)
    for step in range(buffer.pos):
        rows = zip(
            buffer.observations[step],
            buffer.next_observations[step],
            buffer.actions[step],
            buffer.rewards[step],
            buffer.dones[step] * (1 - buffer.timeouts[step]),
            strict=True,
        )
        errors = [td_errors_by_hand(name, algorithm, row) for row in rows]
        bare.append(buffer.starts[step], td_error=np.array(errors))
    assert buffer.index.next_id == bare.next_id == 304
    assert buffer.timeouts.sum() > 0
    ids = np.arange(304)
    np.testing.assert_allclose(buffer.index.priority(ids), bare.priority(ids), rtol=1e-4)
    assert bare.stats()["decayed_share"] > 0.0


@pytest.mark.parametrize("name", EVERY)
def test_training_goes_on_as_ever(name):
    algorithm = model(name, buffer=TD)
    algorithm.learn(400)
    stats = algorithm.replay_buffer.index.stats()
    assert stats["updates_applied"] == algorithm._n_updates * 50 > 0
    algorithm.replay_buffer.index.check_invariants()


def test_td_errors_of_a_batch_are_those_that_training_tells_the_buffer():
    algorithm = model("DQN", buffer=TD, learning_starts=10**6)
    algorithm.learn(200)
    buffer = algorithm.replay_buffer
    batch = buffer.sample(32, env=None)
    expected = algorithm.td_errors(batch)
    told = []
    buffer.update_priorities = lambda ids, errors: told.append(np.asarray(errors).reshape(-1))
    draw = buffer.sample
    buffer.sample = lambda *args, **kwargs: batch
    buffer.drawn = batch
    algorithm.train(1, 32)
    buffer.sample = draw
    np.testing.assert_allclose(np.abs(told[0]), expected, rtol=1e-5)


@pytest.mark.parametrize("more", [{"n_steps": 3}, {"optimize_memory_usage": True}])
def test_the_error_is_over_one_step_wherever_the_next_observation_lies(more):
    if "optimize_memory_usage" in more:
        more = {**more, "buffer": {**TD, "handle_timeout_termination": False}}
    algorithm = model("DQN", learning_starts=10**6, **{"buffer": TD, **more})
    seen = []
    store, rate = algorithm._store_transition, algorithm.td_errors
    algorithm.td_errors = lambda batch: seen.append(batch) or rate(batch)

    def stored(buffer, action, new_obs, reward, dones, infos):
        before = algorithm._last_obs.copy()
        store(buffer, action, new_obs, reward, dones, infos)
        batch = seen[-1]
        np.testing.assert_array_equal(batch.observations.numpy(), before)
        np.testing.assert_array_equal(batch.rewards.numpy()[:, 0], reward.astype(np.float32))
        running = ~dones
        np.testing.assert_array_equal(batch.next_observations.numpy()[running], new_obs[running])
        assert batch.discounts is None

    algorithm._store_transition = stored
    algorithm.learn(1200)  # beyond the 800 that fit
    assert len(seen) == 300


def test_what_is_normalized_is_rated_normalized():
    environment = VecNormalize(envs("DQN"))
    algorithm = sb3.DQN(
        "MlpPolicy",
        environment,
        **settings("DQN", learning_starts=10**6, replay_buffer_kwargs={"prioritization": RULE, **TD}),
    )
    seen = []
    rate = algorithm.td_errors
    algorithm.td_errors = lambda batch: seen.append((batch, environment.get_original_obs())) or rate(batch)
    algorithm.learn(40)
    batch, _ = seen[-1]
    raw = algorithm.replay_buffer.observations[algorithm.replay_buffer.pos - 1]
    np.testing.assert_allclose(batch.observations.numpy(), environment.normalize_obs(raw), rtol=1e-5)
    assert not np.allclose(batch.observations.numpy(), raw)


def test_goals_may_be_replaced_later():
    algorithm = goal_model("SAC", **TD)
    algorithm.learn(300)
    assert algorithm.replay_buffer.index.stats()["updates_applied"] > 0


def test_a_saved_buffer_goes_on_and_one_of_before_enters_at_the_largest_priority(tmp_path):
    algorithm = model("DQN", buffer=TD)
    algorithm.learn(200)
    algorithm.save_replay_buffer(tmp_path / "buffer")
    other = model("DQN", buffer=TD)
    other.load_replay_buffer(tmp_path / "buffer", truncate_last_traj=False)
    assert other.replay_buffer.initial == "td"
    assert_same_priorities(other.replay_buffer.index, algorithm.replay_buffer.index)
    other.learn(200, reset_num_timesteps=False)
    state = algorithm.replay_buffer.__getstate__()
    for name in ("initial", "rate"):
        del state[name]
    old = sb3.PrioritizedReplayBuffer.__new__(sb3.PrioritizedReplayBuffer)
    old.__setstate__(state)
    assert (old.initial, old.rate) == ("max", None)


def test_a_buffer_that_nobody_tells_td_errors_says_so_and_stays_as_it_was():
    spaces = envs("DQN").observation_space, envs("DQN").action_space
    buffer = sb3.PrioritizedReplayBuffer(50, *spaces, prioritization=RULE, **TD)
    step = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32), np.zeros((1, 1)), [0.0], [False], [{}]
    with pytest.raises(PserError, match="nobody who tells them"):
        buffer.add(*step)
    assert (buffer.pos, buffer.index.next_id) == (0, 0)
    buffer.rate = lambda held: [2.0]
    buffer.add(*step)
    assert buffer.index.priority([0])[0] == pytest.approx(2.0 + RULE.eps)


@pytest.mark.parametrize(
    ("rule", "initial", "why"),
    [(RULE, "current", '"max" or "td"'), (pser.Uniform(), "td", "needs priorities")],
)
def test_what_makes_no_sense_is_refused(rule, initial, why):
    with pytest.raises(PserError, match=why):
        model("DQN", rule=rule, buffer={"initial": initial})


def test_a_class_of_ones_own_without_values_says_what_to_define():
    class Mine(sb3.Prioritized, sb3.algorithms._DQN):
        pass

    kwargs = {"replay_buffer_kwargs": {"prioritization": RULE, **TD}}
    algorithm = Mine("MlpPolicy", envs("DQN"), **settings("DQN", **kwargs))
    with pytest.raises(PserError, match=r"define values_of\(batch\)"):
        algorithm.learn(100)
    assert algorithm.replay_buffer.pos == 0  # said before anything is played
