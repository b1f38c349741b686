"""The dueling aggregation against its equation, and its backward pass against autograd."""

import torch

from pser.learner.dueling import combine, split_gradient


def test_every_atom_is_value_plus_advantage_less_their_mean():
    outputs = torch.randn(5, (1 + 3) * 2)
    for row, combined in zip(outputs.tolist(), combine(outputs, 2).tolist(), strict=True):
        value, advantages = row[:2], [row[2:4], row[4:6], row[6:8]]
        for atom in range(2):
            mean = sum(advantage[atom] for advantage in advantages) / 3
            for action, advantage in enumerate(advantages):
                assert abs(combined[2 * action + atom] - (value[atom] + advantage[atom] - mean)) < 1e-6


def test_advantages_average_to_zero():
    outputs = torch.randn(4, 1 + 6)
    torch.testing.assert_close(combine(outputs, 1).mean(1, keepdim=True), outputs[:, :1])


def test_split_gradient_is_autograds():
    outputs = torch.randn(4, (1 + 3) * 5, requires_grad=True)
    gradient = torch.randn(4, 3 * 5)
    (expected,) = torch.autograd.grad(combine(outputs, 5), outputs, gradient)
    torch.testing.assert_close(split_gradient(gradient, 5), expected)
