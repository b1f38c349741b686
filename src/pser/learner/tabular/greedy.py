"""The agents that know more than a replay memory: the oracle, and prioritized sweeping.

Both choose among the distinct pairs (state, action) of the memory, of which there are only 2n; replaying any
copy of a pair changes Q in the same way.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pser.env.blind_cliffwalk import ExhaustiveMemory, discount, optimal_values
from pser.learner.tabular.q_learning import Init, TabularRun, TabularSettings
from pser.learner.tabular.watch import Watch

Values = NDArray[np.float64]


class PairModel:
    """The chain as the memory shows it: what each pair yields, where it leads. Odd pairs are wrong actions."""

    def __init__(self, memory: ExhaustiveMemory) -> None:
        _, where = np.unique(memory.pair, return_index=True)
        self.reward = memory.rewarded[where].astype(np.float64)
        self.discount = np.where(memory.terminated[where], 0.0, discount(memory.states))
        self.next_state = np.where(memory.terminated[where], 0, memory.state[where] + 1)

    def td_errors(self, values: Values) -> Values:
        """δ of every pair: r + γ·max_a Q(s', a) − Q(s, a)."""
        best = values.reshape(-1, 2).max(axis=1)
        errors: Values = self.reward + self.discount * best[self.next_state] - values
        return errors

    def predecessors(self, pair: int) -> NDArray[np.int64]:
        """The pairs that lead to the state of `pair`."""
        return np.flatnonzero((self.next_state == pair // 2) & (self.discount > 0.0))


def oracle_choice(values: Values, truth: Values, td_errors: Values, step_size: float) -> int:
    """The pair whose update leaves the smallest global loss, in hindsight (Schaul et al. 2016, Section 3.1).

    Only one entry changes, so that is the pair whose own squared error falls most; ties go to the first.
    """
    before = (truth - values) ** 2
    after = (truth - values - step_size * td_errors) ** 2
    return int(np.argmax(before - after))


def initial_sweeping_priorities(model: PairModel, init: Init, eps: float) -> Values:
    """max: 1 for every pair; eps: ε; current_td: |δ| + ε at Q = 0."""
    pairs = len(model.reward)
    if init == "max":
        return np.ones(pairs)
    if init == "eps":
        return np.full(pairs, eps)
    return np.abs(model.td_errors(np.zeros(pairs))) + eps


def run_greedy(
    name: Literal["oracle", "sweeping"],
    init: Init,
    memory: ExhaustiveMemory,
    draws: np.random.Generator,
    settings: TabularSettings,
    max_iterations: int,
) -> TabularRun:
    """One run of the oracle or of prioritized sweeping."""
    model = PairModel(memory)
    truth = optimal_values(memory.states).ravel()
    if name == "oracle":
        return _run(model, truth, settings, max_iterations, _oracle(model, truth, settings.step_size), None)
    priorities = initial_sweeping_priorities(model, init, settings.eps)
    choose, learned = _sweeping(model, priorities, settings.eps, draws)
    return _run(model, truth, settings, max_iterations, choose, learned)


def _oracle(model: PairModel, truth: Values, step_size: float) -> Callable[[Values], int]:
    return lambda values: oracle_choice(values, truth, model.td_errors(values), step_size)


def _sweeping(
    model: PairModel, priorities: Values, eps: float, draws: np.random.Generator
) -> tuple[Callable[[Values], int], Callable[[int, Values], None]]:
    """Prioritized sweeping (Moore & Atkeson 1993; on Bellman errors as in Andre et al. 1998), the memory as
    its model.

    The pair of largest priority is replayed, ties broken by a draw. It then holds the |δ| + ε that is left,
    and the pairs that lead to its state hold at least their own new |δ| + ε. Each replay counts as one
    iteration.
    """

    def choose(values: Values) -> int:
        tied = np.flatnonzero(priorities == priorities.max())
        return int(tied[int(draws.random() * len(tied))])

    def learned(pair: int, values: Values) -> None:
        errors = np.abs(model.td_errors(values)) + eps
        priorities[pair] = errors[pair]
        before = model.predecessors(pair)
        priorities[before] = np.maximum(priorities[before], errors[before])

    return choose, learned


def _run(
    model: PairModel,
    truth: Values,
    settings: TabularSettings,
    max_iterations: int,
    choose: Callable[[Values], int],
    learned: Callable[[int, Values], None] | None,
) -> TabularRun:
    values = np.zeros_like(truth)
    watch = Watch(settings, max_iterations, float(np.mean(truth**2)))
    while not watch.over:
        pair = choose(values)
        values[pair] += settings.step_size * model.td_errors(values)[pair]
        if learned is not None:
            learned(pair, values)
        watch.learned(float(np.mean((truth - values) ** 2)), rewarded=bool(model.reward[pair]))
    return watch.run()
