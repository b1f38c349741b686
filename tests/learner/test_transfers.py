"""An update stays on its device: the batch goes there, what the memory is told comes back once, and nothing else.

On PyTorch's meta device tensors have no values: reading one, whether to print, to branch or to copy it, is an error.
So an update that runs there asks the device for nothing but what is counted here.
"""

import itertools

import numpy as np
import pytest
import torch
from tests.learner.test_noisy import batch

from pser.learner import dqn
from pser.learner.dqn import DQN
from pser.learner.noisy import Noise
from pser.learner.presets import classic, minatar

META = torch.device("meta")


class OfTheComputer(torch.Generator):
    """A generator whatever the device; a class, since PyTorch asks what is one."""

    def __new__(cls, device=None):
        return super().__new__(cls)


@pytest.fixture
def counted(monkeypatch):
    """Transfers in both directions; what comes back has the right shape."""
    count = {"there": 0, "back": 0}

    def back(tensor):
        assert tensor.device == META
        count["back"] += 1
        return np.zeros(tensor.shape, np.float32)

    there = DQN._tensor

    def counting(self, array):
        count["there"] += 1
        return there(self, array)

    monkeypatch.setattr(dqn, "_array", back)
    monkeypatch.setattr(DQN, "_tensor", counting)
    # The meta device has no random numbers; drawing them is an operation on the device's own values.
    monkeypatch.setattr(torch, "Generator", OfTheComputer)
    monkeypatch.setattr(Noise, "redraw", lambda self: setattr(self, "on", True))
    monkeypatch.setattr(Noise, "__init__", without_stream(Noise.__init__))
    return count


def without_stream(init):
    def made(self, network, generator):
        init(self, network, generator)
        self.values = self.values.to(META)
        for module in network.modules():
            if getattr(module, "noise", None) is self:
                module.input_noise, module.output_noise = (
                    torch.zeros(size, device=META) for size in reversed(module.weight.shape)
                )

    return made


@pytest.mark.parametrize("measure", [False, True])
@pytest.mark.parametrize(
    ("double_q", "dueling", "loss", "noisy", "optimizer"),
    list(
        itertools.product([False, True], [False, True], ["huber", "c51"], [False, True], ["rmsprop", "adam"])
    ),
)
def test_an_update_reads_its_device_once(counted, double_q, dueling, loss, noisy, optimizer, measure):
    changes = {"double_q": double_q, "dueling": dueling, "loss": loss, "noisy": noisy, "optimizer": optimizer}
    settings = classic("gym:CartPole-v1").override({**changes, "hidden": (8, 8), "max_grad_norm": 1.0})
    agent = DQN(settings, (4,), 2, seed=0, device=META)
    learned = agent.learn(batch(), measure=measure)
    assert counted == {"there": 6, "back": 2 if measure else 1}  # the statistics, if asked for, come together
    assert learned.signal.shape == (8,)


@pytest.mark.parametrize("signal", ["td", "loss", "sqrt_loss", "kl", "clipped", "none"])
def test_every_signal_is_computed_there(counted, signal):
    settings = minatar("minatar:breakout").override({"loss": "c51", "priority_signal": signal})
    agent = DQN(settings, (4, 10, 10), 3, seed=0, device=META)
    data = batch()
    data.observation = data.next_observation = np.zeros((8, 4, 10, 10), bool)
    agent.learn(data, measure=False)
    assert counted == {"there": 6, "back": 1}
