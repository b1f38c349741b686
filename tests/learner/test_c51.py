"""C51's equations against slow plain restatements."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pser.learner.c51 import C51Head, cross_entropy, entropy, project
from pser.learner.head import Head
from pser.learner.settings import AgentSettings

torch.set_num_threads(1)
CPU = torch.device("cpu")
ATOMS, V_MIN, V_MAX = 5, -2.0, 3.0
SUPPORT = torch.linspace(V_MIN, V_MAX, ATOMS)


def head(num_actions=3):
    return C51Head(AgentSettings(loss="c51", atoms=ATOMS, v_min=V_MIN, v_max=V_MAX), num_actions, CPU)


def plain_projection(probabilities, reward, discount):
    """Bellemare et al. 2017, Algorithm 1, one atom at a time; where b is whole, both neighbours are the same atom."""
    step = (V_MAX - V_MIN) / (ATOMS - 1)
    found = [0.0] * ATOMS
    for j, mass in enumerate(probabilities):
        value = min(max(reward + discount * (V_MIN + j * step), V_MIN), V_MAX)
        b = (value - V_MIN) / step
        lower, upper = math.floor(b), math.ceil(b)
        if lower == upper:
            found[lower] += mass
        else:
            found[lower] += mass * (upper - b)
            found[upper] += mass * (b - lower)
    return found


def softmax(logits):
    powers = [math.exp(x) for x in logits]
    return [power / sum(powers) for power in powers]


ROW = st.tuples(
    st.lists(st.floats(-5, 5), min_size=ATOMS, max_size=ATOMS),
    st.floats(-8, 8),
    st.sampled_from([0.0, 0.5, 0.99, 1.0]),
)


@given(st.lists(ROW, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_projection_is_algorithm_1_and_keeps_all_mass(rows):
    probabilities = [softmax(logits) for logits, _, _ in rows]
    rewards, discounts = [row[1] for row in rows], [row[2] for row in rows]
    found = project(
        torch.tensor(probabilities), torch.tensor(rewards), torch.tensor(discounts), SUPPORT, V_MIN, V_MAX
    )
    for row, (p, reward, discount) in zip(
        found, zip(probabilities, rewards, discounts, strict=True), strict=True
    ):
        np.testing.assert_allclose(row.numpy(), plain_projection(p, reward, discount), atol=2e-5)
        assert row.sum().item() == pytest.approx(1, abs=1e-5)
        atoms = [min(max(reward + discount * z, V_MIN), V_MAX) for z in SUPPORT.tolist()]
        clamped = sum(mass * atom for mass, atom in zip(p, atoms, strict=True))
        assert (row @ SUPPORT).item() == pytest.approx(clamped, abs=1e-4)


@pytest.mark.parametrize("shift", [0.0, 1.25, -1.25, 100.0, -100.0])
def test_no_mass_is_lost_where_values_meet_atoms(shift):
    p = torch.tensor([[0.1, 0.2, 0.3, 0.2, 0.2]])
    found = project(p, torch.tensor([shift]), torch.ones(1), SUPPORT, V_MIN, V_MAX)
    np.testing.assert_allclose(found[0], plain_projection(p[0].tolist(), shift, 1.0), atol=1e-6)
    assert found.sum().item() == pytest.approx(1)


def test_q_is_the_mean_of_an_actions_distribution():
    values = torch.randn(2, 3 * ATOMS)
    q = head().q_values(values)
    for row, found in zip(values.tolist(), q.tolist(), strict=True):
        for action in range(3):
            p = softmax(row[action * ATOMS : (action + 1) * ATOMS])
            assert found[action] == pytest.approx(sum(map(float.__mul__, p, SUPPORT.tolist())), abs=1e-5)


@pytest.mark.parametrize("double", [False, True])
def test_target_is_the_projected_distribution_of_the_chosen_action(double):
    values, reward = torch.randn(4, 3 * ATOMS), torch.randn(4)
    discount = torch.tensor([0.9, 0.0, 0.5, 1.0])
    choice = torch.tensor([0, 1, 2, 0])
    found = head().targets(values, choice if double else None, reward, discount)
    q = head().q_values(values)
    for i in range(4):
        action = choice[i].item() if double else q[i].argmax().item()
        p = softmax(values[i, action * ATOMS : (action + 1) * ATOMS].tolist())
        expected = plain_projection(p, reward[i].item(), discount[i].item())
        np.testing.assert_allclose(found[i], expected, atol=1e-5)


def test_n_step_targets_need_only_their_reward_and_discount():
    """Σ γ^k·r_k and γ^n from the memory: the same projection, whatever n is."""
    p = [0.1, 0.2, 0.3, 0.2, 0.2]
    rewards, gamma = [0.5, -1.0, 0.25], 0.9
    summed, discount = sum(gamma**k * r for k, r in enumerate(rewards)), gamma**3
    found = project(
        torch.tensor([p]), torch.tensor([summed]), torch.tensor([discount]), SUPPORT, V_MIN, V_MAX
    )
    np.testing.assert_allclose(found[0], plain_projection(p, summed, discount), atol=1e-6)


def test_loss_is_the_cross_entropy_and_kl_leaves_the_entropy_out():
    taken, targets = torch.randn(2, ATOMS).log_softmax(1), torch.tensor([[0, 0.25, 0.75, 0, 0], [0.2] * 5])
    expected = [
        -sum(m * log for m, log in zip(row, logs, strict=True))
        for row, logs in zip(targets.tolist(), taken.tolist(), strict=True)
    ]
    np.testing.assert_allclose(cross_entropy(taken, targets), expected, rtol=1e-5)
    own = [-sum(m * math.log(m) for m in row if m) for row in targets.tolist()]
    np.testing.assert_allclose(entropy(targets), own, rtol=1e-5)
    np.testing.assert_allclose(
        head().signal("kl", taken, targets), np.subtract(expected, own), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(head().signal("sqrt_loss", taken, targets), np.sqrt(expected), rtol=1e-5)


def test_kl_of_what_is_known_is_zero_and_never_less():
    targets = torch.rand(50, ATOMS).softmax(1)
    signal = head().signal("kl", targets.log(), targets)
    assert (signal >= 0).all()
    np.testing.assert_allclose(signal, 0, atol=1e-6)


def test_td_error_is_of_the_means():
    taken, targets = torch.randn(3, ATOMS).log_softmax(1), torch.rand(3, ATOMS).softmax(1)
    expected = (targets * SUPPORT).sum(1) - (taken.exp() * SUPPORT).sum(1)
    torch.testing.assert_close(head().td_errors(taken, targets), expected)


def test_the_stated_gradient_is_autograds():
    values, action, weights = torch.randn(6, 3 * ATOMS), torch.tensor([0, 1, 2, 0, 1, 2]), torch.rand(6)
    targets = torch.rand(6, ATOMS).softmax(1)
    stated = head().gradient(values, action, targets, weights)
    torch.testing.assert_close(stated, Head.gradient(head(), values, action, targets, weights))
