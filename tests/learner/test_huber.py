"""The equations of Q-learning with the Huber loss against plain restatements."""

import numpy as np
import pytest
import torch

from pser.learner.head import Head
from pser.learner.huber import HuberHead, huber, td_target
from pser.learner.settings import AgentSettings

torch.set_num_threads(1)
CPU = torch.device("cpu")


def head():
    return HuberHead(AgentSettings(), 2, CPU)


def test_bootstrap_is_the_largest_target_value():
    q, zero, one = torch.tensor([[1.0, 5.0], [4.0, 2.0]]), torch.zeros(2), torch.ones(2)
    assert head().targets(q, None, zero, one).tolist() == [5, 4]


def test_double_q_takes_the_online_networks_choice():
    q, zero, one = torch.tensor([[1.0, 5.0], [4.0, 2.0]]), torch.zeros(2), torch.ones(2)
    assert head().targets(q, torch.tensor([0, 1]), zero, one).tolist() == [1, 2]


def test_td_target_has_no_bootstrap_where_terminated():
    one = torch.ones(2)
    assert td_target(8 * one, one, torch.tensor([0.5, 0.0])).tolist() == [5, 1]
    assert head().td_errors(0.25 * one, torch.tensor([5.0, 1.0])).tolist() == [4.75, 0.75]


def test_huber_equals_torchs():
    delta = torch.linspace(-3, 3, 61)
    expected = torch.nn.functional.huber_loss(delta, torch.zeros(61), reduction="none")
    torch.testing.assert_close(huber(delta), expected)


def test_the_stated_gradient_is_autograds():
    generator = torch.Generator().manual_seed(0)
    values, targets = torch.randn(8, 2, generator=generator), 3 * torch.randn(8, generator=generator)
    action, weights = torch.randint(0, 2, (8,), generator=generator), torch.rand(8, generator=generator)
    stated = head().gradient(values, action, targets, weights)
    torch.testing.assert_close(stated, Head.gradient(head(), values, action, targets, weights))
    elsewhere = head().gradient(values.t().contiguous().t(), action, targets, weights)  # not by the kernel
    assert torch.equal(stated, elsewhere)


@pytest.mark.parametrize(
    ("kind", "signal"),
    [
        ("td", [0.3, -2.0]),
        ("loss", [0.045, 1.5]),
        ("sqrt_loss", np.sqrt([0.045, 1.5])),
        ("clipped", [1.0, 2.0]),
        ("none", [0.0, 0.0]),
    ],
)
def test_the_signal_is_what_its_name_says(kind, signal):
    found = head().signal(kind, torch.zeros(2), torch.tensor([0.3, -2.0]))
    np.testing.assert_allclose(found.numpy(), signal, rtol=1e-6)


def test_values_have_no_entropy():
    with pytest.raises(NotImplementedError):
        head().signal("kl", torch.zeros(2), torch.zeros(2))
