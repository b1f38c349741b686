"""RMSProp against its equations in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pser.learner.rmsprop import RMSProp

torch.set_num_threads(1)


def flat(theta, gradient, sizes=()):
    """Parameters of the given sizes, side by side."""
    ends = np.cumsum(sizes)
    pieces = [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]
    return SimpleNamespace(
        values=theta,
        gradients=gradient,
        pieces=pieces,
        collect=lambda loose: gradient.copy_(torch.cat([piece.flatten() for piece in loose])),
    )


def restated(gradients, *, lr, decay, eps, eps_in_sqrt, momentum, centered):
    """θ after each gradient, from θ = 0, in float64."""
    theta = square = mean = velocity = np.zeros_like(gradients[0], np.float64)
    for g in gradients:
        square = decay * square + (1 - decay) * g**2
        mean = decay * mean + (1 - decay) * g if centered else mean
        spread = square - mean**2
        divisor = np.sqrt(spread + eps) if eps_in_sqrt else np.sqrt(spread) + eps
        velocity = momentum * velocity + lr * g / divisor
        theta = theta - velocity
        yield theta


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # by the kernel; by PyTorch's operations
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(("eps", "eps_in_sqrt"), [(1e-5, True), (0.01, False)])
def test_steps_equal_the_equations(dtype, centered, momentum, eps, eps_in_sqrt):
    settings = {"lr": 0.01, "decay": 0.95, "momentum": momentum, "centered": centered}
    settings |= {"eps": eps, "eps_in_sqrt": eps_in_sqrt}
    gradients = np.random.default_rng(0).normal(size=(20, 31))
    theta, gradient = torch.zeros(31, dtype=dtype), torch.zeros(31, dtype=dtype)
    optimizer = RMSProp(flat(theta, gradient), **settings)
    for new, expected in zip(gradients, restated(gradients, **settings), strict=True):
        gradient.copy_(torch.from_numpy(new))
        optimizer.step()
        np.testing.assert_allclose(theta.numpy(), expected, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_a_constant_gradient_never_makes_the_spread_negative(size):
    theta = torch.zeros(size)
    optimizer = RMSProp(flat(theta, torch.full((size,), 1234.567)), lr=0.1, decay=0.5, eps=1e-12)
    for _ in range(50):
        optimizer.step()
    assert torch.isfinite(theta).all()


def test_eps_is_inside_the_root():
    theta = torch.zeros(1)
    RMSProp(flat(theta, torch.full((1,), 1e-6)), lr=1.0, eps=1e-4).step()
    assert theta.item() == pytest.approx(-1e-6 / np.sqrt(1e-4), rel=1e-4)  # outside it would be -1e-6/1e-4


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_eps_beside_the_root_is_pytorchs_own_rule(centered, momentum):
    rule = {"lr": 0.01, "eps": 0.01, "momentum": momentum, "centered": centered}
    gradients = torch.randn(20, 31, generator=torch.Generator().manual_seed(0))
    theirs, ours = torch.zeros(31, requires_grad=True), torch.zeros(31)
    peer = torch.optim.RMSprop([theirs], alpha=0.95, **rule)
    optimizer = RMSProp(flat(ours, torch.zeros(31)), decay=0.95, eps_in_sqrt=False, **rule)
    for gradient in 0.02 * gradients:
        optimizer.gradient.copy_(gradient)
        optimizer.step()
        theirs.grad = gradient.clone()
        peer.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("transposed", [False, True])  # read where they lie; copied first
def test_gradients_that_lie_apart_give_the_same_steps(momentum, transposed):
    sizes, theta, other = (6, 17, 8), torch.zeros(31), torch.zeros(31)
    together = RMSProp(flat(theta, torch.zeros(31)), lr=0.01, momentum=momentum)
    apart = RMSProp(flat(other, torch.full((31,), 9.0), sizes), lr=0.01, momentum=momentum)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        loose = [torch.randn(size, generator=generator) for size in sizes]
        loose[0] = loose[0].view(3, 2).t() if transposed else loose[0].view(2, 3)
        together.gradient.copy_(torch.cat([piece.flatten() for piece in loose]))
        together.step()
        apart.step(loose)
        assert torch.equal(theta, other)
    for name, average in together.state().items():
        assert torch.equal(average, apart.state()[name])
