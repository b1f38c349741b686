"""Tabular Q-learning from a fixed memory on the Blind Cliffwalk: the agents, and one run of one of them.

An agent is a way to choose the next transition to replay; everything else is the same for all of them
(Brittain et al. 2019, Appendix B): γ = 1 − 1/n, step size 1/4, one transition an iteration, Q = 0 at the
start. The order of the memory and the uniform draws depend on the seed and on n alone, so runs of different
agents with the same seed are paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import pser
from pser._kernel import TabularLoop
from pser.env.blind_cliffwalk import ExhaustiveMemory, discount, exhaustive_memory, optimal_values
from pser.errors import PserError

AgentName: TypeAlias = Literal[
    "uniform",
    "oracle",
    "per",
    "pser",
    "sweeping",
    "backward",
    "backprop",
    "ebu",
    "sequences",
    "reaper",
    "ier",
]
Init: TypeAlias = Literal["max", "eps", "current_td"]
INITS: tuple[Init, ...] = ("max", "eps", "current_td")
KIN: tuple[AgentName, ...] = ("backprop", "ebu", "sequences", "reaper", "ier")
WITHOUT_PRIORITIES: frozenset[str] = frozenset({"uniform", "oracle", "backward", *KIN})
"""Agents for which the initial priorities mean nothing: one run stands for every initialisation."""
DRAWS_PER_BLOCK = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Agent:
    """How the next transition is chosen; ρ, η and the decay scheme are PSER's alone."""

    name: AgentName
    """uniform, oracle, per, pser, sweeping, backward, or one of KIN."""
    rho: float | None = None
    """Decay coefficient ρ; at 0 nothing decays, which leaves PER with η."""
    eta: float | None = None
    """Share η of the previous priority that an update keeps."""
    decay: Literal["max", "add"] | None = None
    """Decay scheme: MAX (Eq. 6) or ADD (Eq. 7)."""

    def __post_init__(self) -> None:
        own = (self.rho, self.eta, self.decay)
        if (self.name == "pser") != all(value is not None for value in own) or (
            self.name != "pser" and any(value is not None for value in own)
        ):
            raise PserError(
                f"rho, eta and decay belong to pser, all three; got {self}: give them to pser alone"
            )
        if self.rho is not None and not 0.0 <= self.rho < 1.0:
            raise PserError(f"rho lies between 0 and 1, 1 excluded; got {self.rho}: choose e.g. 0.4")
        if self.eta is not None and not 0.0 <= self.eta < 1.0:
            raise PserError(f"eta lies between 0 and 1, 1 excluded; got {self.eta}: choose e.g. 0.7 or 0")

    @property
    def label(self) -> str:
        """The agent in a few words, for legends and tables."""
        names = {
            "uniform": "Uniform",
            "oracle": "Oracle",
            "per": "PER",
            "sweeping": "Prioritized sweeping",
            "backward": "Backward episodes",
            "backprop": "Reward back-propagation",
            "ebu": "Episodic backward update",
            "sequences": "Transition sequences",
            "reaper": "ReaPER",
            "ier": "Introspective replay",
        }
        if self.rho == 0.0:
            return f"PER with η={self.eta:g}"
        if self.name == "pser":
            return f"PSER ρ={self.rho:g} η={self.eta:g}" + (" ADD" if self.decay == "add" else "")
        return names[self.name]


@dataclass(frozen=True, kw_only=True)
class TabularSettings:
    """What all agents share; the defaults are the paper's (Brittain et al. 2019, Appendix B)."""

    step_size: float = 0.25
    """Step size of Q-learning."""
    alpha: float = 0.5
    """Prioritization exponent α."""
    eps: float = 1e-4
    """Added to |δ|: ε."""
    window: int = 5
    """Decay window W."""
    thresholds: tuple[float, ...] = (1e-3, 1e-5)
    """Falling values of the MSE whose first crossings are recorded; the run ends with the last."""
    record_every: int = 100
    """The MSE is recorded every so many iterations."""
    max_replays: int = 400
    """A run is given up after this many iterations per transition in memory."""

    def __post_init__(self) -> None:
        if not self.thresholds or list(self.thresholds) != sorted(self.thresholds, reverse=True):
            raise PserError(f"thresholds are falling and at least one; got {self.thresholds}: sort them")
        if self.max_replays < 1 or self.record_every < 1:
            raise PserError("max_replays and record_every are at least 1: raise them")


@dataclass(frozen=True, kw_only=True)
class TabularRun:
    """What one run left behind."""

    crossings: tuple[int | None, ...]
    """The first iteration after which the MSE lay below each threshold; None if that never came."""
    first_reward: int | None
    """The iteration that first replayed the rewarded transition."""
    iterations: int
    """How long the run was."""
    curve: NDArray[np.float64]
    """The MSE after 0, record_every, 2·record_every, … iterations."""
    collapse: float | None = None
    """Share of the decayed mass that its own next update took away again; None without decay."""
    masses: tuple[float, ...] | None = None
    """Σ p^α of the whole memory at each crossing (0 if not crossed); None without priorities."""


def generators(states: int, seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """One generator for the order of the memory, one for the draws: the same for every agent."""
    order, draws = np.random.SeedSequence([seed, states]).spawn(2)
    return np.random.default_rng(order), np.random.default_rng(draws)


def prioritization(agent: Agent, settings: TabularSettings) -> pser.PER | pser.PSER:
    """The memory's own setting for a prioritized agent."""
    if agent.rho is None or agent.eta is None or agent.decay is None:
        return pser.PER(alpha=settings.alpha, eps=settings.eps)
    return pser.PSER(
        alpha=settings.alpha,
        eps=settings.eps,
        eta=agent.eta,
        rho=agent.rho,
        window=settings.window,
        decay=agent.decay,
    )


def filled_index(memory: ExhaustiveMemory, rules: pser.PER | pser.PSER, init: Init) -> pser.PriorityIndex:
    """The priority index of the whole memory, initialised as asked.

    max: every priority 1 (the largest so far). eps: every priority ε. current_td: |δ| + ε at Q = 0, with
    decay on insertion (Section 3.2).
    """
    if init == "eps" and isinstance(rules, pser.PSER):
        rules = replace(rules, decay_on_insert=False)
    index = pser.PriorityIndex(len(memory), rules)
    stream = np.zeros(len(memory), dtype=np.int64)
    if init == "max":
        index.append(memory.first, stream=stream)
    elif init == "eps":
        index.append(memory.first, np.full(len(memory), rules.eps), stream=stream)
    else:
        index.append(memory.first, stream=stream, td_error=memory.rewarded.astype(np.float64))
    return index


def compiled_loop(
    memory: ExhaustiveMemory,
    index: pser.PriorityIndex | None,
    *,
    replay: Literal["uniform", "prioritized", "backward"],
    step_size: float,
    thresholds: Sequence[float],
    max_iterations: int,
    record_every: int = 0,
    report: Literal["found", "settled", "both", "learned"] = "found",
) -> TabularLoop:
    """The kernel's loop over this memory; actions are told apart as right (0) and wrong (1)."""
    ends = memory.terminated
    return TabularLoop(
        entry=memory.pair,
        next_state=np.where(ends, 0, memory.state + 1),
        reward=memory.rewarded.astype(np.float64),
        discount=np.where(ends, 0.0, discount(memory.states)),
        episode_starts=np.flatnonzero(memory.first),
        truth=optimal_values(memory.states).ravel(),
        actions=2,
        step_size=step_size,
        index=None if index is None else index._kernel,
        replay=replay,
        report=report,
        thresholds=list(thresholds),
        record_every=record_every,
        max_iterations=max_iterations,
    )


def run_agent(agent: Agent, init: Init, states: int, seed: int, settings: TabularSettings) -> TabularRun:
    """One run until the MSE has crossed every threshold, or the cap."""
    order, draws = generators(states, seed)
    memory = exhaustive_memory(states, order)
    max_iterations = settings.max_replays * len(memory)
    if agent.name in ("oracle", "sweeping"):
        from pser.learner.tabular.greedy import run_greedy

        return run_greedy(agent.name, init, memory, draws, settings, max_iterations)
    if agent.name in KIN:
        from pser.learner.tabular.kin import run_kin

        return run_kin(agent.name, memory, draws, settings, max_iterations)
    index = None
    replay: Literal["uniform", "prioritized", "backward"] = (
        "backward" if agent.name == "backward" else "uniform"
    )
    if agent.name in ("per", "pser"):
        replay = "prioritized"
        index = filled_index(memory, prioritization(agent, settings), init)
    loop = compiled_loop(
        memory,
        index,
        replay=replay,
        step_size=settings.step_size,
        thresholds=settings.thresholds,
        max_iterations=max_iterations,
        record_every=settings.record_every,
    )
    while not loop.done:
        loop.advance(draws.random(DRAWS_PER_BLOCK))
    return TabularRun(
        crossings=tuple(None if at < 0 else at for at in loop.crossings),
        first_reward=None if loop.first_reward < 0 else loop.first_reward,
        iterations=loop.iterations,
        curve=np.array(loop.curve),
        collapse=float(index.stats()["collapse"]) if index is not None and agent.rho else None,
        masses=None if index is None else tuple(loop.masses),
    )
