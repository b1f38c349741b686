"""Noisy layers against their equations; when noise is drawn, and that evaluation plays the means."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from pser.errors import PserError
from pser.learner.dqn import DQN
from pser.learner.fast_path import FastPath
from pser.learner.noisy import Noise, NoisyLinear, make_noisy, scaled
from pser.learner.path import AutogradPath
from pser.learner.presets import classic

torch.set_num_threads(1)
CPU = torch.device("cpu")


def agent(**changes):
    base = {"hidden": (16, 16), "max_grad_norm": 0.0, "noisy": True}
    return DQN(classic("gym:CartPole-v1").override({**base, **changes}), (4,), 2, seed=0, device=CPU)


def batch(size=8, seed=0):
    rng = np.random.default_rng(seed)
    return SimpleNamespace(
        observation=rng.normal(size=(size, 4)).astype(np.float32),
        action=rng.integers(2, size=size),
        reward=rng.normal(size=size).astype(np.float32),
        next_observation=rng.normal(size=(size, 4)).astype(np.float32),
        discount=np.full(size, 0.9, np.float32),
        weights=rng.random(size).astype(np.float32),
    )


def layer(inputs=3, outputs=2, sigma=0.5):
    network = nn.Sequential(nn.Linear(inputs, outputs))
    make_noisy(network, sigma)
    return network[0], Noise(network, torch.Generator().manual_seed(0))


def test_a_noisy_layer_is_its_equation():
    noisy, noise = layer()
    noise.redraw()
    x = torch.randn(4, 3)
    found = noisy(x)
    for row, given in zip(found.tolist(), x.tolist(), strict=True):
        for i in range(2):
            total = noisy.bias[i].item() + noisy.bias_sigma[i].item() * noisy.output_noise[i].item()
            for j in range(3):
                epsilon = noisy.output_noise[i].item() * noisy.input_noise[j].item()
                weight = noisy.weight[i, j].item() + noisy.weight_sigma[i, j].item() * epsilon
                total += weight * given[j]
            assert row[i] == pytest.approx(total, abs=1e-5)


def test_noise_is_a_gaussian_whose_size_is_its_root():
    x = torch.tensor([4.0, -9.0, 0.0])
    assert scaled(x).tolist() == [2, -3, 0]
    noisy, noise = layer(300, 200)
    noise.redraw()
    drawn = noise.values.sign() * noise.values**2  # undo f
    assert abs(drawn.mean()) < 0.15
    assert 0.9 < drawn.std() < 1.1
    assert not np.array_equal(noisy.input_noise[:100], noisy.output_noise[:100])


def test_noise_starts_at_its_scale_over_the_root_of_the_inputs():
    noisy, _ = layer(16, 2, sigma=0.4)
    assert torch.equal(noisy.weight_sigma, torch.full((2, 16), 0.1))
    assert torch.equal(noisy.bias_sigma, torch.full((2,), 0.1))
    assert noisy.weight.abs().max() <= 1 / math.sqrt(16)


def test_a_layer_whose_noise_is_off_is_its_mean():
    noisy, noise = layer()
    x = torch.randn(4, 3)
    mean = nn.functional.linear(x, noisy.weight, noisy.bias)
    assert torch.equal(noisy(x), mean)
    noise.redraw()
    assert not torch.equal(noisy(x), mean)
    noise.on = False
    assert torch.equal(noisy(x), mean)


def test_convolutions_and_what_stands_for_them_stay_as_they_are():
    learner = DQN(
        classic("gym:CartPole-v1").override({"noisy": True, "network": "minatar"}),
        (4, 10, 10),
        3,
        seed=0,
        device=CPU,
    )
    assert not isinstance(learner.online.body, NoisyLinear)
    assert sum(isinstance(module, NoisyLinear) for module in learner.online.modules()) == 2


def test_a_network_without_linear_layers_is_refused():
    with pytest.raises(PserError, match="leave --noisy off"):
        make_noisy(nn.Sequential(nn.Conv2d(1, 1, 1)), 0.5)


@pytest.mark.parametrize("changes", [{}, {"dueling": True, "loss": "c51"}])
def test_the_fast_path_takes_the_same_noise_as_autograd(changes):
    fast, slow = agent(**changes), agent(**changes)
    assert isinstance(fast.online_path, FastPath)
    slow.online_path, slow.target_path = AutogradPath(slow.online), AutogradPath(slow.target)
    for seed in range(3):
        first, second = fast.learn(batch(seed=seed)), slow.learn(batch(seed=seed))
        np.testing.assert_allclose(first.signal, second.signal, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            fast.online_flat.gradients, slow.online_flat.gradients, rtol=1e-3, atol=1e-6
        )


def test_every_act_and_every_update_draws_anew_and_the_networks_draw_their_own():
    learner, rng = agent(), np.random.default_rng(0)
    seen = []

    def note():
        seen.append(tuple(noise.values.clone().numpy().tobytes() for noise in learner.noise))

    for _ in range(3):
        learner.act(np.zeros((1, 4), np.float32), 0.0, rng, training=True)
        note()
        learner.learn(batch())
        note()
    online, target = zip(*seen, strict=True)
    assert len(set(online)) == 6
    assert len(set(target)) == 4  # acting leaves it alone
    assert not set(online) & set(target)


def test_evaluation_plays_the_means_and_draws_nothing():
    learner, rng = agent(noisy_sigma=5.0), np.random.default_rng(0)
    observation = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    before = learner.get_state()["noise"]
    means = [learner.act(observation, 0.0, rng) for _ in range(3)]
    assert np.array_equal(before, learner.get_state()["noise"])
    assert all(np.array_equal(action, means[0]) for action in means)
    assert np.array_equal(means[0], learner.q_values(observation).argmax(1))
    noisy = [learner.act(observation, 0.0, rng, training=True) for _ in range(5)]
    assert len({action.tobytes() for action in noisy}) > 1
    assert np.array_equal(learner.act(observation, 0.0, rng), means[0])  # and is silent again


def test_an_update_leaves_the_networks_their_means():
    learner, rng = agent(noisy_sigma=5.0), np.random.default_rng(0)
    observation = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    learner.learn(batch())
    values, targets = learner.q_values(observation), learner.target_q_values(observation)
    assert np.array_equal(learner.act(observation, 0.0, rng), values.argmax(1))  # acting silences them, too
    assert np.array_equal(learner.q_values(observation), values)
    assert np.array_equal(learner.target_q_values(observation), targets)


def test_the_noise_learns():
    learner = agent()
    sigmas = [
        module.weight_sigma.clone() for module in learner.online.modules() if isinstance(module, NoisyLinear)
    ]
    for seed in range(5):
        learner.learn(batch(seed=seed))
    after = [module.weight_sigma for module in learner.online.modules() if isinstance(module, NoisyLinear)]
    assert all(not torch.equal(one, other) for one, other in zip(sigmas, after, strict=True))


@pytest.mark.parametrize("stream", [None, np.zeros(3, np.uint8), np.zeros(5056, np.float32)])
def test_a_damaged_stream_is_refused_and_nothing_changes(stream):
    learner = agent()
    state, before = learner.get_state(), learner.get_state()
    state["online"] = state["online"] + 1
    state["noise"] = stream
    with pytest.raises(PserError, match="noise"):
        learner.set_state(state)
    assert np.array_equal(learner.get_weights(), before["online"])
