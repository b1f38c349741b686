"""A network of one's own: what it is given, and what is said if it does not fit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.learner.test_loop import SMALL, CountingGame
from tests.learner.test_noisy import batch
from torch import nn

from pser.errors import PserError
from pser.learner.agent import make_agent
from pser.learner.loop import Trainer
from pser.learner.own_network import as_floats, find_factory, make_own
from pser.learner.path import AutogradPath
from pser.learner.presets import classic

torch.set_num_threads(1)
CPU = torch.device("cpu")
HERE = "tests.learner.test_own_network"
NO_CLASS = 5


class Residual(nn.Module):
    """Nothing that a chain could hold."""

    def __init__(self, observation_shape, num_outputs):
        super().__init__()
        self.first = nn.Linear(int(np.prod(observation_shape)), 12)
        self.second, self.last = nn.Linear(12, 12), nn.Linear(12, num_outputs)

    def forward(self, observation):
        assert observation.dtype == torch.float32
        x = torch.tanh(self.first(observation.flatten(1)))
        return self.last(x + torch.tanh(self.second(x)))


class Breaks(nn.Module):
    def __init__(self, observation_shape, num_outputs):
        raise RuntimeError("no such shape\nand more")


def too_wide(shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs + 1))


def two_results(shape, outputs):
    class Two(nn.Linear):
        def forward(self, x):
            return x, x

    return Two(shape[0], outputs)


def needs_more(shape, outputs):
    return nn.Linear(17, outputs)


def doubles(shape, outputs):
    return nn.Linear(shape[0], outputs).double()


def empty(shape, outputs):
    return nn.Identity()


@pytest.mark.parametrize("network", [f"{HERE}:Residual", "factory"])
@pytest.mark.parametrize("changes", [{}, {"dueling": True, "loss": "c51", "noisy": True, "double_q": True}])
def test_any_module_learns(network, changes):
    named = {} if network == "factory" else {"network": network}
    settings = classic("gym:CartPole-v1").override({**changes, **named, "learning_rate": 1e-2})
    agent = make_agent(
        settings, (4,), 2, seed=0, device=CPU, network=Residual if network == "factory" else None
    )
    assert isinstance(agent.online_path, AutogradPath)
    data = batch()
    data.weights[:] = 1
    data.discount[:] = 0  # fixed targets
    losses = [agent.learn(data).statistics.loss for _ in range(300)]
    assert np.mean(losses[-20:]) < 0.5 * losses[0]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_observations_come_as_floats(dtype):
    found = as_floats(torch.tensor([0, 1, 1, 0]).to(dtype))
    assert found.dtype == torch.float32
    assert found.tolist() == [0, 1, 1, 0]


def test_the_seed_alone_decides_its_weights():
    settings, state = classic("gym:CartPole-v1"), torch.random.get_rng_state()
    first, second, other = (
        make_agent(settings, (4,), 2, seed=seed, device=CPU, network=Residual).get_weights()
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_run_takes_a_factory_and_continues_from_its_state():
    def made():
        settings = classic("gym:CartPole-v1").override({**SMALL, "num_envs": 1})
        return Trainer(settings, CountingGame(1), CPU, network=Residual)

    run, other = made(), made()
    list(run.train())
    assert not np.array_equal(run.agent.get_weights(), other.agent.get_weights())
    other.agent.set_state(run.agent.get_state())
    assert np.array_equal(run.agent.get_weights(), other.agent.get_weights())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package.module:Net", "cannot import the network no_such_package.module:Net"),
        (f"{HERE}:Missing", "has no 'Missing'"),
        (f"{HERE}:NO_CLASS", "must be a class or function"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(name, words):
    with pytest.raises(PserError, match=words) as caught:
        find_factory(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (Breaks, r"but Breaks\(\(4,\), 2\) failed \(no such shape\)"),
        (too_wide, r"must give \(batch, num_outputs\) = \(2, 2\) for two observations, got \(2, 3\)"),
        (two_results, "got tuple"),
        (needs_more, "must take observations of shape"),
        (doubles, "must be float32"),
        (empty, "no parameters that could learn"),
        (lambda shape, outputs: None, "must be an nn.Module, got NoneType"),
    ],
)
def test_a_network_that_does_not_fit_is_one_line(factory, words):
    with pytest.raises(PserError, match=words) as caught:
        make_own(factory, (4,), 2)
    assert "\n" not in str(caught.value)


def test_the_impala_network_of_the_examples_fits_atari(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    network = make_own(find_factory("examples.impala_network:ImpalaNetwork"), (4, 84, 84), 6)
    assert sum(parameter.numel() for parameter in network.parameters()) > 900_000


def test_modules_of_the_current_folder_are_found(tmp_path, monkeypatch):
    (tmp_path / "my_net.py").write_text(
        "from torch import nn\n\ndef make(shape, outputs):\n    return nn.Linear(4, outputs)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert isinstance(find_factory("my_net:make")((4,), 2), nn.Linear)
