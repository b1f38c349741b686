"""A network whose parameters live in one tensor is the same network."""

import torch
from torch import nn

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
