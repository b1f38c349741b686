"""The seams hold: a loss, a replay rule and a learner that the package does not know, each in one piece."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tests.learner.test_loop import SMALL, CountingGame

import pser
from pser.learner.agent import Learned, Statistics
from pser.learner.events import IntervalLogged
from pser.learner.head import Head
from pser.learner.loop import Trainer
from pser.learner.presets import classic
from pser.learner.registry import LEARNERS, LOSSES, Loss
from pser.learner.replay import MemoryReplay
from pser.learner.strategies import STRATEGIES, Strategy

torch.set_num_threads(1)
CPU = torch.device("cpu")
HERE = "tests.learner.test_seams"


class SquaredHead(Head):
    """A loss: δ²/2, its gradient left to autograd."""

    def q_values(self, values):
        return values

    def taken(self, values, action):
        return values.gather(1, action.unsqueeze(1)).squeeze(1)

    def targets(self, values, choice, reward, discount):
        best = values.amax(1) if choice is None else self.taken(values, choice)
        return reward + discount * best

    def td_errors(self, taken, targets):
        return targets - taken

    def losses(self, taken, targets):
        return 0.5 * (targets - taken) ** 2


@dataclass(frozen=True, kw_only=True)
class Latest:
    """A rule: only the latest transitions are learned from."""

    stratified: bool = True


class LatestReplay(MemoryReplay):
    def __init__(self, settings, game, agent):
        super().__init__(settings, game, agent)
        self.told = 0

    def sampled_by(self, rule):
        return pser.Uniform()

    def draw(self, batch_size, beta):
        newest = self.memory.index.next_id
        return self.memory[np.arange(newest - batch_size, newest)]

    def learned(self, batch, signal):
        assert np.array_equal(batch.ids, np.arange(batch.ids[0], batch.ids[0] + len(batch.ids)))
        self.told += len(signal)

    def get_state(self):
        return {"told": self.told}

    def set_state(self, state, memory):
        super().set_state(state, memory)
        self.told = state["told"]


class Coin:
    """A learner: learns nothing, and throws a coin."""

    def __init__(self, settings, shape, num_actions, *, seed, device, network=None):
        self.num_actions, self.updates = num_actions, 0

    def act(self, observation, epsilon, rng, *, training=False):
        return rng.integers(self.num_actions, size=len(observation))

    def learn(self, batch, *, measure=True):
        self.updates += 1
        return Learned(np.ones(len(batch.ids), np.float32), Statistics(0.0, 0.0, 1.0) if measure else None)

    def update_target(self):
        pass


def trained(**changes):
    settings = classic("gym:CartPole-v1").override({**SMALL, "num_envs": 1, **changes})
    run = Trainer(settings, CountingGame(1), CPU)
    rows = [event.row for event in run.train() if isinstance(event, IntervalLogged)]
    return run, rows


@pytest.mark.parametrize("dueling", [False, True])
def test_a_loss_is_a_class_and_a_line(monkeypatch, dueling):
    monkeypatch.setitem(LOSSES, "squared", Loss(f"{HERE}:SquaredHead", of_distributions=False))
    run, rows = trained(loss="squared", dueling=dueling, priority_signal="loss")
    assert rows[-1]["loss"] > 0
    assert type(run.agent.head).__name__ == "SquaredHead"


def test_a_rule_is_a_class_and_a_line(monkeypatch):
    monkeypatch.setitem(
        STRATEGIES, "latest", Strategy(Latest, lambda rule, initial: "Latest", replay=f"{HERE}:LatestReplay")
    )
    run, _ = trained(replay="latest")
    assert run.settings.replay.label == "Latest"
    assert run.replay.told == run.counters.updates * run.settings.agent.batch_size > 0
    assert run.get_state()["replay"] == {"told": run.replay.told}


def test_a_learner_is_a_class_and_a_line(monkeypatch):
    monkeypatch.setitem(LEARNERS, "coin", f"{HERE}:Coin")
    run, rows = trained(learner="coin")
    assert run.agent.updates == run.counters.updates > 0
    assert rows[-1]["td_abs_mean"] == 1.0
