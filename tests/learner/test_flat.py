"""A network whose parameters live in one tensor is the same network."""

import numpy as np
import pytest
import torch
from torch import nn

from pser.errors import PserError
from pser.learner.flat import ALIGNMENT, FlatParameters

torch.set_num_threads(1)

CPU = torch.device("cpu")


def small_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


def test_values_and_gradients_are_the_networks_own():
    plain, network = small_network(), small_network()
    flat = FlatParameters(network, CPU)
    x = torch.randn(4, 3)
    for net in (plain, network):
        net(x).square().sum().backward()
    for ours, theirs in zip(network.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(ours.grad, theirs.grad)
        assert ours.data_ptr() - flat.values.data_ptr() in range(0, 4 * flat.values.numel(), 4 * ALIGNMENT)
    assert flat.gradients.abs().sum() > 0


def test_copy_makes_networks_equal_but_not_one():
    one, other = small_network(), small_network()
    with torch.no_grad():
        one[0].weight.add_(1.0)
    flat_one, flat_other = FlatParameters(one, CPU), FlatParameters(other, CPU)
    flat_other.copy_from(flat_one)
    x = torch.randn(4, 3)
    assert torch.equal(one(x), other(x))
    before = other(x).clone()
    with torch.no_grad():
        flat_one.values.add_(1.0)
    assert torch.equal(other(x), before)


def test_gradients_are_clipped_to_the_norm_only_when_longer():
    flat = FlatParameters(small_network(), CPU)
    flat.gradients.fill_(1.0)
    flat.clip_gradients(0.5)
    assert torch.linalg.vector_norm(flat.gradients).item() == torch.tensor(0.5).item()
    kept = flat.gradients.clone()
    flat.clip_gradients(10.0)
    assert torch.equal(flat.gradients, kept)


def test_no_gradient_at_all_stays_zero_when_clipped():
    flat = FlatParameters(small_network(), CPU)
    flat.clip_gradients(0.5)
    assert (flat.gradients == 0).all()


def test_what_a_network_remembers_besides_its_parameters_goes_with_them():
    def normalised():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))

    one, other = normalised(), normalised()
    flat, copy = FlatParameters(one, CPU), FlatParameters(other, CPU)
    one(torch.randn(16, 3))  # moves the running averages
    copy.copy_from(flat)
    assert torch.equal(other[1].running_mean, one[1].running_mean)
    one(torch.randn(16, 3))
    copy.set_state(flat.get_state())
    assert torch.equal(other[1].running_var, one[1].running_var)
    assert other[1].num_batches_tracked == 2


@pytest.mark.parametrize(
    "wrong", [np.zeros(3, np.float32), np.zeros(48), [1.0], np.full(48, np.nan, np.float32), None]
)
def test_saved_weights_that_do_not_fit_are_refused(wrong):
    flat = FlatParameters(small_network(), CPU)
    before = flat.get_state()
    with pytest.raises(PserError, match="saved weights"):
        flat.set_state(wrong)
    assert np.array_equal(flat.get_state(), before)
