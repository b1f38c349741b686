"""A module of one's own takes the fast path if it is certainly one layer after the other, and equals autograd there."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.nn import functional as F

from pser.learner.agent import make_agent
from pser.learner.fast_path import FastPath
from pser.learner.flat import FlatParameters
from pser.learner.links import ConvLink, SmallConvLink
from pser.learner.noisy import Noise, make_noisy
from pser.learner.own_network import AsFloats
from pser.learner.path import AutogradPath, path_of
from pser.learner.presets import classic
from pser.learner.straight import straight_line

torch.set_num_threads(1)
CPU = torch.device("cpu")
SCALE = 2.0


class Two(nn.Module):
    """The layers of all that follow: four inputs, three outputs."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)


class ByFunction(Two):
    def forward(self, x):
        """Words are no code."""
        return self.last(functional.relu(self.first(x)))


class ByMethod(Two):
    def forward(self, x):
        hidden = self.first(x / 2).relu()
        return self.last(hidden.flatten(1))


class ByModule(Two):
    def __init__(self):
        super().__init__()
        self.relu, self.flat = nn.ReLU(inplace=True), nn.Flatten()

    def forward(self, observation):
        x = self.flat(observation)
        x = self.relu(self.first(x))
        return self.relu(self.last(x))


class ByLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 6)])
        self.inner, self.end = ByFunction(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.inner.first = nn.Linear(6, 6)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.end[0](self.inner(x))


class ByAlias(Two):
    def forward(self, x):
        x = F.relu(self.first(torch.flatten(x, start_dim=1)), inplace=True)
        return torch.nn.functional.relu(self.last(x))


class Planes(nn.Module):
    """MinAtar's network, and others of its form."""

    def __init__(self, channels, side, filters, padding=0):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=padding)
        self.last = nn.Linear(filters * (side - 2 + 2 * padding) ** 2, 3)

    def forward(self, x):
        x = x / 3
        x = functional.relu(self.conv(x))
        return self.last(torch.flatten(x, 1))


def paths(module):
    torch.manual_seed(0)
    network = AsFloats(module)
    flat = FlatParameters(network, CPU)
    return path_of(network), AutogradPath(network), flat


def assert_equal_to_autograd(module, observation):
    fast, slow, flat = paths(module)
    assert isinstance(fast, FastPath)
    expected, graph = slow.forward_saving(observation)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    flat.collect(slow.backward(graph, gradient))
    wanted = flat.gradients.clone()
    used = wanted != 0
    flat.gradients.fill_(9.0)  # is overwritten, not added to
    with torch.inference_mode():
        outputs, saved = fast.forward_saving(observation)
        assert fast.backward(saved, gradient) == ()
        torch.testing.assert_close(fast.forward(observation), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(flat.gradients[used], wanted[used], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [ByFunction, ByMethod, ByModule, ByLoop, ByAlias])
@given(batch=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_a_chain_is_recognised_however_it_is_written(kind, batch, seed):
    observation = torch.randn(batch, 4, generator=torch.Generator().manual_seed(seed))
    assert_equal_to_autograd(kind(), observation)


@given(
    channels=st.integers(1, 7),
    side=st.sampled_from([10, 10, 3, 6]),
    filters=st.sampled_from([16, 16, 5]),
    padding=st.sampled_from([0, 0, 1]),
    dtype=st.sampled_from([torch.bool, torch.uint8, torch.float32]),
    seed=st.integers(0, 2**31),
)
def test_a_convolution_may_be_the_kernels(channels, side, filters, padding, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    observation = torch.randint(0, 3, (3, channels, side, side), generator=generator).to(dtype)
    module = Planes(channels, side, filters, padding)
    assert_equal_to_autograd(module, observation)
    small = (filters, padding) == (16, 0)
    assert type(paths(module)[0].body.layers[0]) is (SmallConvLink if small else ConvLink)


class Rows(nn.Module):
    """Linear layers on the last of several axes."""

    def __init__(self):
        super().__init__()
        self.each, self.then, self.last = nn.Linear(4, 5), nn.Linear(5, 2), nn.Linear(6, 3)

    def forward(self, x):
        x = functional.relu(self.each(x))
        return self.last(torch.flatten(self.then(x), 1))


class RowsOfPlanes(nn.Module):
    """The same after a convolution."""

    def __init__(self):
        super().__init__()
        self.conv, self.each, self.last = nn.Conv2d(2, 3, 2), nn.Linear(3, 2), nn.Linear(18, 3)

    def forward(self, x):
        return self.last(torch.flatten(self.each(functional.relu(self.conv(x))), 1))


def test_linear_layers_take_the_last_axis():
    generator = torch.Generator().manual_seed(0)
    assert_equal_to_autograd(Rows(), torch.randn(5, 3, 4, generator=generator))
    assert_equal_to_autograd(RowsOfPlanes(), torch.randn(5, 2, 4, 4, generator=generator))


@pytest.mark.parametrize("kind", [Rows, ByFunction])
def test_noisy_layers_learn_as_by_autograd(kind):
    network = AsFloats(kind())
    make_noisy(network, 0.5)
    flat = FlatParameters(network, CPU)
    noise = Noise(network, torch.Generator().manual_seed(0))
    noise.redraw()
    observation, gradient = torch.randn(5, 3, 4) if kind is Rows else torch.randn(5, 4), torch.randn(5, 3)
    fast, slow = path_of(network), AutogradPath(network)
    assert isinstance(fast, FastPath)
    expected, graph = slow.forward_saving(observation)
    flat.collect(slow.backward(graph, gradient))
    wanted = flat.gradients.clone()
    with torch.inference_mode():
        outputs, saved = fast.forward_saving(observation)
        fast.backward(saved, gradient)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(flat.gradients, wanted, rtol=1e-4, atol=1e-5)


def test_noise_finds_its_way_into_it():
    settings = classic("gym:CartPole-v1").override({"noisy": True})
    agent = make_agent(settings, (4,), 3, seed=0, device=CPU, network=lambda shape, outputs: ByFunction())
    assert isinstance(agent.online_path, FastPath)
    agent.noise[0].redraw()
    observation = torch.randn(5, 4)
    with torch.inference_mode():
        noisy = agent.online_path.forward(observation)
        torch.testing.assert_close(noisy, agent.online(observation), rtol=1e-5, atol=1e-5)
        agent.noise[0].on = False
        assert not torch.equal(noisy, agent.online_path.forward(observation))


class Branches(Two):
    wide = True

    def forward(self, x):
        x = self.first(x)
        if self.wide:
            x = torch.relu(x)
        return self.last(x)


class Asks(Two):
    """A branch on nothing but a layer, which may be taken away later."""

    def __init__(self):
        super().__init__()
        self.middle = nn.ReLU()

    def forward(self, x):
        x = self.first(x)
        if self.middle is not None:
            x = self.middle(x)
        return self.last(x)


class Trains(Two):
    def forward(self, x):
        return self.last(functional.relu(self.first(x)) if self.training else self.first(x))


class Counts(Two):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return self.last(torch.relu(self.first(x)))


class Keeps(Two):
    def forward(self, x):
        self.seen = x
        return self.last(torch.relu(self.first(x)))


class Anneals(Two):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        return self.last(torch.relu(self.first(x / self.scale)))


class ReadsGlobal(Two):
    def forward(self, x):
        return self.last(torch.relu(self.first(x / SCALE)))


class Draws(Two):
    def forward(self, x):
        return self.last(torch.relu(self.first(x / random.random())))


def helper(x):
    return torch.relu(x)


class Helped(Two):
    def forward(self, x):
        return self.last(helper(self.first(x)))


class OwnMethod(Two):
    def hidden(self, x):
        return torch.relu(self.first(x))

    def forward(self, x):
        return self.last(self.hidden(x))


class Disguised(Two):
    def relu(self, x):
        return x

    def forward(self, x):
        return self.last(self.relu(self.first(x)))


class Adds(Two):
    def forward(self, x):
        x = self.first(x)
        return self.last(x + torch.relu(x))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(torch.relu(self.first(torch.relu(self.first(x)))))


class Unused(Two):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


class Aside(Two):
    def forward(self, x):
        x = self.first(x)
        torch.relu(x)
        return self.last(x)


class Dropped(ByFunction):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 6), nn.Dropout())


class Normed(ByFunction):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))


class Parameter(Two):
    def forward(self, x):
        return functional.linear(torch.relu(self.first(x)), self.last.weight, self.last.bias)


class Stops(Two):
    def forward(self, x):
        with torch.no_grad():
            x = torch.relu(self.first(x))
        return self.last(x)


class InPlace(Two):
    def forward(self, x):
        return self.last(torch.relu(self.first(x).mul_(2)))


class Optional(Two):
    def forward(self, x, more=None):
        return self.last(torch.relu(self.first(x)))


class Caller(ByFunction):
    def __call__(self, x):
        return 2 * super().__call__(x)


class Finder(ByFunction):
    def __getattr__(self, name):
        return super().__getattr__(name)


class Iterated(Two):
    def __iter__(self):
        return iter([self.last, self.first])

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class Ends(Two):
    def forward(self, x):
        return self.last(torch.relu(self.first(x))) / 2


class OtherAxis(Two):
    def forward(self, x):
        return self.last(torch.relu(self.first(torch.flatten(x, 0, -1).relu())))


def replaced():
    module = ByFunction()
    module.forward = lambda x: module.last(module.first(x))
    return module


def replaced_within():
    module = ByFunction()
    module.first.forward = lambda x: functional.linear(x, module.first.weight)
    return module


def hooked():
    module = ByFunction()
    module.register_forward_hook(lambda *_: None)
    return module


def parametrized():
    module = ByFunction()
    nn.utils.parametrizations.weight_norm(module.first)
    return module


def as_attribute():
    module = ByModule()
    del module.relu
    module.relu = torch.relu  # a name that is known, and now means whatever it is set to
    return module


OTHERS = [
    Branches,
    Asks,
    Trains,
    Counts,
    Keeps,
    Anneals,
    ReadsGlobal,
    Draws,
    Helped,
    OwnMethod,
    Disguised,
    Adds,
    Twice,
    Unused,
]
OTHERS += [
    Aside,
    Dropped,
    Normed,
    Parameter,
    Stops,
    InPlace,
    Optional,
    Caller,
    Finder,
    Iterated,
    Ends,
    OtherAxis,
]
OTHERS += [replaced, replaced_within, hooked, parametrized, as_attribute]


@pytest.mark.parametrize("make", OTHERS)
def test_whatever_is_not_certain_goes_through_autograd(make):
    path, _, _ = paths(make())
    assert isinstance(path, AutogradPath)


def test_what_is_not_certain_is_not_even_run():
    module = Counts()
    assert straight_line(module) is None
    assert module.calls == 0


@pytest.mark.parametrize("make", [ByLoop, ByModule, Draws, Dropped, Twice, Adds])
def test_looking_at_a_module_changes_nothing(make):
    module = make()
    shown, kept = repr(module), {name: value.clone() for name, value in module.state_dict().items()}
    attributes = [dict(vars(part)) for part in module.modules()]
    states = torch.random.get_rng_state(), random.getstate()
    straight_line(module)
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert repr(module) == shown
    assert [dict(vars(part)) for part in module.modules()] == attributes
    assert all(torch.equal(value, kept[name]) for name, value in module.state_dict().items())
