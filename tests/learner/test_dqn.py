"""One update of DQN against autograd; acting, saving and going on."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pser.errors import PserError
from pser.learner.dqn import DQN
from pser.learner.presets import classic

torch.set_num_threads(1)

CPU = torch.device("cpu")


def agent(**changes):
    settings = classic("gym:CartPole-v1").override({"hidden": (16, 16), "max_grad_norm": 0.0, **changes})
    return DQN(settings, (4,), 2, seed=0, device=CPU)


def batch(size=8, seed=0):
    rng = np.random.default_rng(seed)
    return SimpleNamespace(
        observation=rng.normal(size=(size, 4)).astype(np.float32),
        action=rng.integers(2, size=size),
        reward=(3 * rng.normal(size=size)).astype(np.float32),
        next_observation=rng.normal(size=(size, 4)).astype(np.float32),
        discount=np.where(rng.random(size) < 0.3, 0, 0.9).astype(np.float32),
        weights=rng.random(size).astype(np.float32),
    )


@pytest.mark.parametrize("double_q", [False, True])
def test_gradient_is_autograds_of_the_weighted_huber_loss(double_q):
    learner, data = agent(double_q=double_q), batch()
    learner.optimizer.step = lambda loose: None  # keep the gradient, leave the weights
    with torch.no_grad():
        learner.target_flat.values.add_(0.1)
        q_next = learner.target(torch.from_numpy(data.next_observation))
        choice = (learner.online(torch.from_numpy(data.next_observation)) if double_q else q_next).argmax(1)
        value = q_next[torch.arange(8), choice]
        target = torch.from_numpy(data.reward) + torch.from_numpy(data.discount) * value
    learned = learner.learn(data)
    ours = learner.online_flat.gradients.clone()

    learner.online_flat.gradients.zero_()
    q = learner.online(torch.from_numpy(data.observation))[torch.arange(8), torch.from_numpy(data.action)]
    per_row = torch.nn.functional.huber_loss(q, target, reduction="none")
    loss = (torch.from_numpy(data.weights) * per_row).mean()
    loss.backward()
    torch.testing.assert_close(ours, learner.online_flat.gradients, rtol=1e-5, atol=1e-7)
    assert learned.statistics.loss == pytest.approx(loss.item(), rel=1e-5)
    assert learned.statistics.q == pytest.approx(q.mean().item(), rel=1e-5)
    assert learned.statistics.td_abs == pytest.approx((target - q).abs().mean().item(), rel=1e-5)
    np.testing.assert_allclose(learned.signal, (target - q).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_learning_reduces_the_loss_on_a_fixed_batch():
    learner, data = agent(learning_rate=1e-2), batch()
    losses = [learner.learn(data).statistics.loss for _ in range(300)]
    assert losses[-1] < 0.01 * losses[0]


def test_a_zero_weight_teaches_nothing():
    learner, data = agent(), batch()
    data.weights[:] = 0
    before = learner.get_weights()
    learner.learn(data)
    assert np.array_equal(learner.get_weights(), before)


def test_gradients_are_clipped_where_asked():
    learner = agent(max_grad_norm=0.01)
    learner.learn(batch())
    assert torch.linalg.vector_norm(learner.online_flat.gradients).item() == pytest.approx(0.01, rel=1e-4)


def test_nothing_is_measured_unless_asked_for():
    learner, asked, data = agent(), agent(), batch()
    first, second = learner.learn(data, measure=False), asked.learn(data)
    assert first.statistics is None
    assert np.array_equal(first.signal, second.signal)
    assert np.array_equal(learner.get_weights(), asked.get_weights())


def test_greedy_actions_maximise_q_and_random_ones_are_uniform():
    learner, rng = agent(), np.random.default_rng(0)
    observation = np.random.default_rng(1).normal(size=(4000, 4)).astype(np.float32)
    greedy = learner.q_values(observation).argmax(1)
    assert np.array_equal(learner.act(observation, 0.0, rng), greedy)
    assert 0.45 < learner.act(observation, 1.0, rng).mean() < 0.55
    assert 0.7 < (learner.act(observation, 0.5, rng) == greedy).mean() < 0.8


def test_exploring_does_not_ask_the_network(monkeypatch):
    learner = agent()
    monkeypatch.setattr(learner, "q_values", lambda _: pytest.fail("the network was asked"))
    learner.act(np.zeros((3, 4), np.float32), 1.0, np.random.default_rng(0))


def test_current_td_uses_the_online_network_on_both_sides():
    learner, data = agent(), batch()
    with torch.no_grad():
        learner.target_flat.values.zero_()
    terminated = data.discount == 0
    delta = learner.new_priorities(
        data.observation, data.action, data.reward.astype(np.float64), data.next_observation, terminated
    )
    q, q_next = learner.q_values(data.observation), learner.q_values(data.next_observation)
    expected = data.reward + np.where(terminated, 0, 0.99) * q_next.max(1) - q[np.arange(8), data.action]
    np.testing.assert_allclose(delta, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_state_continues_bit_for_bit(optimizer):
    straight = agent(optimizer=optimizer)
    for seed in range(5):
        straight.learn(batch(seed=seed))
    straight.update_target()
    straight.learn(batch(seed=5))
    resumed = agent(optimizer=optimizer)
    resumed.set_state(straight.get_state())
    for learner in (straight, resumed):
        for seed in range(6, 10):
            learner.learn(batch(seed=seed))
    assert np.array_equal(straight.get_weights(), resumed.get_weights())
    assert np.array_equal(straight.get_state()["target"], resumed.get_state()["target"])


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("online", np.zeros(3, np.float32)),
        ("target", np.zeros(3, np.float32)),
        ("optimizer", {"square": np.zeros(3, np.float32)}),
        ("optimizer", {"exp_avg": np.zeros(3, np.float32)}),
        ("optimizer", None),
    ],
)
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_a_saved_state_that_does_not_fit_changes_nothing(optimizer, entry, value):
    learner = agent(optimizer=optimizer)
    state, before = learner.get_state(), learner.get_state()
    for part in ("online", "target"):
        state[part] = state[part] + 1
    state["optimizer"] = {name: array + 1 for name, array in state["optimizer"].items()}
    state[entry] = value if value is None or entry != "optimizer" else {**state[entry], **value}
    with pytest.raises(PserError):
        learner.set_state(state)
    after = learner.get_state()
    for part in ("online", "target"):
        assert np.array_equal(after[part], before[part])
    assert all(
        np.array_equal(after["optimizer"][name], before["optimizer"][name]) for name in after["optimizer"]
    )


def test_a_state_saved_before_the_first_update_may_lack_the_optimizers():
    learner = agent(optimizer="adam")
    learner.set_state({**learner.get_state(), "optimizer": {}})  # as earlier versions wrote it
    learner.learn(batch())
