"""The arithmetic of the priorities against counting by hand, and against the memory itself."""

import math
from pathlib import Path

import numpy as np
import pytest

import pser
from pser.analysis.anatomy.arithmetic import (
    Surprises,
    decay_reach,
    ruled_for_life,
    shrinking_insertion_share,
)
from pser.analysis.anatomy.note import decay_note
from pser.analysis.anatomy.page import measure, render, standard_cases
from pser.analysis.anatomy.simulation import Set, simulate
from pser.learner.presets import paper

PAGE = Path(__file__).resolve().parents[3] / "docs" / "anatomy.md"


def replays_by_hand(td, eta):
    """Replay a transition until its own error rules; count the replays that started from insertion."""
    priority, count = 1.0, 1
    while eta * priority > td:
        priority *= eta
        count += 1
    return count


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("td", [0.9, 0.31, 0.05, 0.001])
def test_the_share_of_errors_that_do_not_shrink_is_that_counted_by_hand(td, eta):
    surprises = Surprises(median=td, spread=1e-9, reward_share=0.0, shrink=1.0)
    assert shrinking_insertion_share(surprises, eta, 8) == min(replays_by_hand(td, eta), 8) / 8


def test_insertion_rules_a_whole_life_below_eta_to_the_replays():
    assert ruled_for_life(0.7, 8) == pytest.approx(0.0576, abs=1e-4)
    assert replays_by_hand(0.0575, 0.7) > 8 >= replays_by_hand(0.0577, 0.7)


def test_decay_reaches_as_far_as_it_exceeds_what_insertion_left():
    reach = decay_reach(1.0, 0.7, 0.4, 8)
    assert 0.4 ** math.floor(reach) > 0.7**8 > 0.4 ** math.ceil(reach)
    assert reach == pytest.approx(3.1, abs=0.05)
    assert decay_reach(0.01, 0.7, 0.4, 8) == 0.0
    assert decay_reach(1.0, 0.0, 0.4, 8) == math.inf
    assert decay_reach(1.0, 0.7, 0.0, 8) == 0.0


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.5, 0.7])
def test_the_prediction_is_near_the_simulation(eta):
    found = simulate(Set(prioritization=pser.PSER(eta=eta), capacity=10_000))
    assert found.from_insertion == pytest.approx(shrinking_insertion_share(Surprises(), eta, 8), abs=0.07)


def test_the_shares_of_a_simulation_sum_to_one():
    for initial in ("max", "td"):
        found = simulate(Set(prioritization=pser.PSER(eta=0.3), initial=initial, capacity=3_000))
        assert found.insertion + found.retention + found.own + found.decay == pytest.approx(1.0)
        assert found.decay > 0.05


def test_the_papers_eta_makes_a_rota_and_none_does_not():
    even = simulate(Set(prioritization=pser.PSER(eta=0.7), capacity=5_000))
    uneven = simulate(Set(prioritization=pser.PSER(eta=0.0), capacity=5_000))
    assert even.evenness < 0.8 < 1.2 < uneven.evenness
    assert even.decay < 0.03 < uneven.decay


def test_uniform_replay_is_as_even_as_chance():
    found = simulate(Set(prioritization=pser.Uniform(stratified=False), capacity=5_000))
    assert found.evenness == pytest.approx(1.0, abs=0.1)
    assert found.effective_samples == pytest.approx(1.0)


class Ledger:
    """A slow account of where each transition's priority comes from, kept beside the memory and without asking it."""

    def __init__(self, rule):
        self.rule, self.source, self.priority = rule, [], []

    def add(self, priority):
        self.source.append("insertion")
        self.priority.append(priority)

    def update(self, at, td):
        own, kept = td + self.rule.eps, self.rule.eta * self.priority[at]
        self.source[at] = "own" if own >= kept else "retention"
        self.priority[at] = max(own, kept)
        for back in range(1, min(self.rule.reach, at) + 1):
            handed = self.rule.rho**back * own
            if handed > self.priority[at - back]:
                self.source[at - back], self.priority[at - back] = "decay", handed


@pytest.mark.parametrize("eta", [0.0, 0.5, 0.9])
def test_the_memorys_shares_are_those_of_a_slow_account(eta):
    rng, rule = np.random.default_rng(3), pser.PSER(eta=eta, alpha=0.7)
    index, ledger = pser.PriorityIndex(50, rule, seed=0), Ledger(rule)
    for step in range(50):
        index.append([step == 0])
        ledger.add(1.0)
        for _ in range(3):
            at, td = int(rng.integers(step + 1)), float(rng.uniform(0, 0.5))
            index.update([at], [td])
            ledger.update(at, td)
    mass = np.array(ledger.priority) ** 0.7
    names = {"insertion": "insertion", "retention": "retention", "td_error": "own", "decay": "decay"}
    stats = index.stats()
    for name, source in names.items():
        held = mass[[one == source for one in ledger.source]].sum() / mass.sum()
        assert stats[f"mass_from_{name}"] == pytest.approx(held, rel=1e-9, abs=1e-12)


def test_a_rota_falls_by_eta_at_each_replay_and_nothing_else_counts():
    index = pser.PriorityIndex(20, pser.PSER(eta=0.7, window=0, eps=0.0), seed=0)
    index.append(np.arange(20) % 5 == 0, stream=np.zeros(20, dtype=np.int64))
    replays = np.zeros(20)
    for _ in range(30):
        ids, _ = index.sample(4)
        index.update(ids, np.zeros(4))
        replays[np.unique(ids)] += 1
    assert index.priority(np.arange(20)) == pytest.approx(0.7**replays)
    assert replays.max() - replays.min() <= 6  # the least replayed comes first


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"initial": "td"}, False),
        ({"eta": 0.3}, False),
        ({"retain": "decayed"}, False),
        ({"replay": "per"}, False),
        ({"window": 0}, False),
        ({"update_period_steps": 1}, False),
    ],
)
def test_training_is_told_when_decay_is_left_next_to_nothing(changes, told):
    note = decay_note(paper("atari:Pong").override(changes))
    assert (note is not None) == told
    if told:
        assert note.startswith("note: with eta 0.7 and 8 replays")
        assert "\n" not in note


def test_the_page_is_what_the_command_writes():
    surprises = Surprises()
    text = render(measure(standard_cases(), surprises), surprises, "assets/anatomy.png")
    assert PAGE.read_text() == text
