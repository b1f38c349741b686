"""Kin of PSER on the Blind Cliffwalk: backward walks of priority, of targets, of whole batches.

Each is a stream of targets: which transition is learned from next, and towards what. Every replayed transition counts
as one iteration, as for the other agents. The rules and their sources are those of `pser.learner.kin`.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import pser
from pser.env.blind_cliffwalk import ExhaustiveMemory, discount, optimal_values
from pser.learner.kin.library import Library
from pser.learner.kin.reliability import raw_priorities
from pser.learner.kin.rules import BackwardUpdate, ReaPER, RewardBackprop, Sequences
from pser.learner.kin.targets import backward_targets
from pser.learner.kin.walkers import Walkers
from pser.learner.tabular.q_learning import AgentName, TabularRun, TabularSettings
from pser.learner.tabular.watch import Watch

Values = NDArray[np.float64]
Lesson: TypeAlias = tuple[int, float | None]
"""A transition, and its target; None: r + γ·max_a Q(s', a) as of now."""


class Chain:
    """The memory as Q-learning reads it; pairs (state, action) are numbered, the right action of a state first."""

    def __init__(self, memory: ExhaustiveMemory) -> None:
        self.pair = memory.pair
        self.action = memory.pair % 2
        self.reward = memory.rewarded.astype(np.float64)
        self.discount = np.where(memory.terminated, 0.0, discount(memory.states))
        self.next_state = np.where(memory.terminated, 0, memory.state + 1)
        self.starts = np.flatnonzero(memory.first)
        self.ends = np.append(self.starts[1:], len(memory)) - 1
        self.first = memory.first
        self.state = memory.state

    def target(self, at: int, values: Values) -> float:
        """r + γ·max_a Q(s', a)."""
        best = values[2 * self.next_state[at] : 2 * self.next_state[at] + 2].max()
        return float(self.reward[at] + self.discount[at] * best)

    def episode(self, number: int) -> NDArray[np.int64]:
        """The transitions of an episode, in order of time."""
        return np.arange(self.starts[number], self.ends[number] + 1)

    def back(self, at: int, steps: int) -> list[int]:
        """A transition and up to `steps` − 1 before it in its episode, newest first."""
        found = [at]
        while len(found) < steps and not self.first[found[-1]]:
            found.append(found[-1] - 1)
        return found


Told: TypeAlias = Callable[[int, float], None]
"""Hears the TD error found at each replayed transition."""


def backprop(chain: Chain, draws: np.random.Generator) -> tuple[Iterator[Lesson], Told]:
    """Reward back-propagation (Zhong et al. 2017)."""
    rule, walkers = RewardBackprop(), Walkers()
    index = pser.PriorityIndex(len(chain.pair), pser.PER(alpha=1.0, eps=0.0), seed=draws)
    priority = np.where(chain.reward != 0.0, rule.high_priority, rule.low_priority)
    index.append(chain.first, priority, stream=np.zeros(len(priority), dtype=np.int64))
    walkers.start(np.flatnonzero(chain.reward))

    def lessons() -> Iterator[Lesson]:
        while True:
            ids, _ = index.sample(1)
            yield int(ids[0]), None
            fallen, risen = walkers.move(ids, index.predecessors(ids, 1)[:, 0], 0)
            if fallen or risen:
                new = [rule.low_priority] * len(fallen) + [rule.high_priority] * len(risen)
                index.set_priorities(fallen + risen, new)

    return lessons(), lambda at, td: None


def ebu(chain: Chain, draws: np.random.Generator, values: Values) -> tuple[Iterator[Lesson], Told]:
    """Episodic backward update (Lee et al. 2019): an episode drawn uniformly, its targets built from Q as it is."""
    rule = BackwardUpdate()

    def lessons() -> Iterator[Lesson]:
        while True:
            steps = chain.episode(int(draws.integers(len(chain.starts))))
            q_next = values.reshape(-1, 2)[chain.next_state[steps]]
            targets = backward_targets(
                chain.reward[steps], chain.discount[steps], chain.action[steps], q_next, rule.diffusion
            )
            yield from zip(steps[::-1].tolist(), targets[::-1].tolist(), strict=True)

    return lessons(), lambda at, td: None


def virtual_sequence(chain: Chain, end: int, length: int, draws: np.random.Generator) -> list[int]:
    """A sequence, newest first, joined where it begins to another that leads to the same state, if any does.

    Karimpanal and Bouffanais 2018 join parts of different trajectories at equal states; here one is drawn among all
    stored transitions that lead there.
    """
    own = chain.back(end, length)
    state = chain.state[own[-1]]
    leading = np.flatnonzero((chain.next_state == state) & (chain.discount > 0.0))
    if state == 0 or not len(leading):
        return own
    return own + chain.back(int(leading[draws.integers(len(leading))]), length)


def sequences(chain: Chain, draws: np.random.Generator) -> tuple[Iterator[Lesson], Told]:
    """Transition sequences (Karimpanal and Bouffanais 2018), joined at equal states, beside uniform replay."""
    rule = Sequences()
    library = Library(rule.library_size)

    def lessons() -> Iterator[Lesson]:
        while True:
            ends = [end for end, surprise in library.ends.items() if surprise > 0.0]
            if ends and draws.random() < rule.library_share:
                end = ends[int(draws.integers(len(ends)))]
                sequence = virtual_sequence(chain, end, rule.sequence_length, draws)
                yield from ((at, None) for at in sequence)
            else:
                uniform = draws.integers(len(chain.pair), size=rule.sequence_length)
                yield from ((at, None) for at in uniform.tolist())

    return lessons(), lambda at, td: library.consider(np.array([at]), np.array([td]), 0)


def reaper(
    chain: Chain, draws: np.random.Generator, settings: TabularSettings
) -> tuple[Iterator[Lesson], Told]:
    """ReaPER (Pleiss et al. 2025) with the study's α; what was never replayed counts with |δ| = 1, the largest."""
    rule = ReaPER(alpha=settings.alpha, eps=settings.eps)
    index = pser.PriorityIndex(len(chain.pair), pser.PER(alpha=rule.alpha, eps=0.0), seed=draws)
    sizes = np.ones(len(chain.pair))
    episode = np.cumsum(chain.first) - 1
    priorities = np.concatenate(
        [raw_priorities(sizes[chain.episode(i)], rule) for i in range(len(chain.starts))]
    )
    index.append(chain.first, priorities, stream=np.zeros(len(sizes), dtype=np.int64))

    def lessons() -> Iterator[Lesson]:
        while True:
            ids, _ = index.sample(1)
            yield int(ids[0]), None

    def told(at: int, td: float) -> None:
        sizes[at] = abs(td) + rule.eps
        steps = chain.episode(int(episode[at]))
        index.set_priorities(steps, raw_priorities(sizes[steps], rule))

    return lessons(), told


def ier(chain: Chain, length: int) -> tuple[Iterator[Lesson], Told]:
    """Introspective replay (Kumar and Nagaraj 2022): runs of `length` steps backward from the largest surprise.

    What was never replayed is the most surprising, the newest first; a run goes on across the starts of episodes.
    """
    surprise = np.full(len(chain.pair), np.inf)

    def lessons() -> Iterator[Lesson]:
        while True:
            pivot = len(surprise) - 1 - int(surprise[::-1].argmax())
            yield from ((at, None) for at in range(pivot, max(pivot - length, -1), -1))

    def told(at: int, td: float) -> None:
        surprise[at] = abs(td)

    return lessons(), told


def run_kin(
    name: AgentName,
    memory: ExhaustiveMemory,
    draws: np.random.Generator,
    settings: TabularSettings,
    max_iterations: int,
) -> TabularRun:
    """One run until the error has crossed every threshold, or the cap."""
    chain, truth = Chain(memory), optimal_values(memory.states).ravel()
    values = np.zeros_like(truth)
    kin: dict[str, Callable[[], tuple[Iterator[Lesson], Told]]] = {
        "backprop": lambda: backprop(chain, draws),
        "ebu": lambda: ebu(chain, draws, values),
        "sequences": lambda: sequences(chain, draws),
        "reaper": lambda: reaper(chain, draws, settings),
        "ier": lambda: ier(chain, Sequences().sequence_length),
    }
    lessons, told = kin[name]()
    error = float(np.mean(truth**2))
    watch = Watch(settings, max_iterations, error)
    while not watch.over:
        at, target = next(lessons)
        pair = chain.pair[at]
        td = (chain.target(at, values) if target is None else target) - values[pair]
        values[pair] += settings.step_size * td
        told(at, td)
        if td:
            error = float(np.mean((truth - values) ** 2))
        watch.learned(error, rewarded=bool(chain.reward[at]))
    return watch.run()
