"""The backward pass written out gives what autograd gives, and is taken only where it may be."""

import pytest
import torch
from torch import nn

from pser.learner.fast_path import FastPath, fast_path
from pser.learner.flat import FlatParameters
from pser.learner.networks import Streams, build_network
from pser.learner.own_network import AsFloats
from pser.learner.path import AutogradPath, path_of

torch.set_num_threads(1)
CPU = torch.device("cpu")
NETWORKS = {
    "nature": lambda streams: build_network("nature", (4, 84, 84), streams, hidden=()),
    "minatar": lambda streams: build_network("minatar", (6, 10, 10), streams, hidden=()),
    "mlp": lambda streams: build_network("mlp", (3, 2), streams, hidden=(8, 4)),
    "one hidden layer": lambda streams: build_network("mlp", (5,), streams, hidden=(7,)),
    "own chain": lambda streams: AsFloats(
        nn.Sequential(
            nn.Conv2d(2, 3, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(3, 4, 2),
            nn.Flatten(),
            nn.Linear(4, 6),
            nn.ReLU(),
            nn.Linear(6, sum(streams.sizes)),
        )
    ),
}
SHAPES = {
    "nature": (4, 84, 84),
    "minatar": (6, 10, 10),
    "mlp": (3, 2),
    "one hidden layer": (5,),
    "own chain": (2, 4, 4),
}


def made(name, streams):
    torch.manual_seed(0)
    network = NETWORKS[name](streams)
    return network, FlatParameters(network, CPU)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bool])
@pytest.mark.parametrize("streams", [Streams((6,)), Streams((1, 6)), Streams((1, 6), share_hidden=True)])
@pytest.mark.parametrize("name", NETWORKS)
def test_written_out_backward_equals_autograd(name, streams, dtype):
    network, flat = made(name, streams)
    fast, slow = path_of(network), AutogradPath(network)
    assert isinstance(fast, FastPath)
    generator = torch.Generator().manual_seed(0)
    observation = torch.randint(0, 3, (3, *SHAPES[name]), generator=generator).to(dtype)
    gradient = torch.randn(3, sum(streams.sizes), generator=generator)
    expected, graph = slow.forward_saving(observation)
    flat.collect(slow.backward(graph, gradient))
    gradients = flat.gradients.clone()
    flat.gradients.fill_(9.0)  # is overwritten, not added to
    with torch.inference_mode():
        outputs, saved = fast.forward_saving(observation)
        assert fast.backward(saved, gradient) == ()
        torch.testing.assert_close(fast.forward(observation), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)
    inside = gradients != 0
    torch.testing.assert_close(flat.gradients[inside], gradients[inside], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_fast_path_reads_the_parameters_where_they_are(name):
    network, flat = made(name, Streams((6,)))
    fast = path_of(network)
    with torch.no_grad():
        flat.values.mul_(1.5)
        observation = torch.ones(2, *SHAPES[name])
        torch.testing.assert_close(fast.forward(observation), network(observation), rtol=1e-5, atol=1e-5)


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def frozen():
    layer = nn.Linear(4, 4)
    layer.bias.requires_grad_(False)
    return layer


def hooked():
    layer = nn.Linear(4, 4)
    layer.register_forward_hook(lambda *_: None)
    return layer


SHARED = nn.Linear(4, 4)


@pytest.mark.parametrize(
    "layers",
    [
        (nn.Linear(4, 4), nn.Tanh()),
        (nn.Linear(4, 4), Doubled()),
        (nn.Linear(4, 4, bias=False),),
        (nn.ReLU(), nn.Linear(4, 4)),
        (nn.Flatten(), nn.ReLU(), nn.Linear(4, 4)),
        (SHARED, nn.ReLU(), SHARED),
        (frozen(),),
        (hooked(),),
        (),
    ],
    ids=["tanh", "own", "no bias", "relu first", "relu of flat", "shared", "frozen", "hooked", "empty"],
)
def test_what_a_chain_cannot_hold_goes_through_autograd(layers):
    network = AsFloats(nn.Sequential(*layers))
    FlatParameters(network, CPU)
    assert fast_path(network) is None
    assert isinstance(path_of(network), AutogradPath)


@pytest.mark.parametrize("has_engine", [True, False])
def test_gradients_are_those_of_torch_autograd_grad(has_engine, monkeypatch):
    if not has_engine:  # another version of PyTorch
        monkeypatch.setattr("pser.learner.path.torch.autograd.Variable", object())
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    path, observation, gradient = AutogradPath(network), torch.randn(5, 3), torch.randn(5, 2)
    with torch.inference_mode():
        outputs, saved = path.forward_saving(observation)
        found = path.backward(saved, gradient + 0)
    expected = torch.autograd.grad(network(observation), list(network.parameters()), gradient)
    assert torch.equal(outputs, network(observation))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_autograd_leaves_what_is_frozen_or_unused_without_gradient():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.kept = nn.Linear(3, 2), nn.Linear(3, 2), frozen()

        def forward(self, x):
            return self.used(x)

    network = Partly()
    flat = FlatParameters(network, CPU)
    flat.gradients.fill_(9.0)
    network.kept.weight.grad.zero_()
    path = path_of(network)
    _, saved = path.forward_saving(torch.ones(2, 3))
    flat.collect(path.backward(saved, torch.ones(2, 2)))
    assert (network.used.weight.grad == 2).all()
    assert (network.unused.weight.grad == 0).all()
