"""Monte Carlo of Theorem 1: how many updates Q-learning with learning rate 1 takes, under each reading of it.

Every process runs on the project's own priority index over the whole exhaustive memory, filled (but for the
last two) with TD errors as priorities: 1 at the goal, 0 elsewhere. They differ in what a replayed transition
reports, and in when priorities decay backward.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import pser
from pser.env.blind_cliffwalk import ExhaustiveMemory, exhaustive_memory
from pser.errors import PserError
from pser.learner.tabular.q_learning import DRAWS_PER_BLOCK, compiled_loop

CONVERGED_MSE = 1e-12
"""With learning rate 1 every entry is either exact or far off: any small number tells them apart."""
MAX_REPLAYS = 100_000
"""A repetition is given up after so many updates per transition; none ever was."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One reading of Theorem 1."""

    name: str
    """How the rows of theorem.json call it."""
    what: str
    """What it is, in one line."""
    strategy: Literal["per", "pser"] = "pser"
    """Whether priorities decay backward at all."""
    report: Literal["found", "settled", "both", "learned"] = "found"
    """|δ| before the update (found), after it (settled), first one then the other (both: the found one decays),
    or after it only if it taught something (learned)."""
    decay: Literal["once", "repeated"] = "once"
    """Decay when the memory is filled only, or at each update too."""
    max_prio: bool = False
    """Every transition starts with priority 1 (as Algorithm 1 stores them), not with its TD error."""
    alpha: float = 1.0
    """Prioritization exponent α."""
    eps: float = 0.0
    """Added to |δ|: ε. At 0, sampling is uniform once every priority is 0."""
    window: int | None = None
    """Decay window W; None reaches back to the start of the episode."""
    etas: tuple[float, ...] = (0.0,)
    """The values of η it is run with."""


PROOF = "α = 1, ε = 0, a replayed transition drops to 0 (the proof's process)"
ALGORITHM = "Algorithm 1 (p ← max(|δ|, η·p), δ as found before the update), α = 1, ε = 0"
PAPER = "Algorithm 1 with the tabular section's α = 0.5, ε = 1e-4, W = 5"
MAX_PRIO = "the same, but every transition starts with the maximal priority, as Algorithm 1 stores it"
BOTH_ETAS = (0.0, 0.7)

PROCESSES: tuple[Process, ...] = (
    Process(name="per_proof", what=f"PER; {PROOF}", strategy="per", report="settled"),
    Process(name="pser_proof", what=f"PSER, decay once; {PROOF}", report="settled"),
    Process(
        name="pser_proof_repeated",
        what=f"PSER, decay at each update; {PROOF}",
        report="both",
        decay="repeated",
    ),
    Process(
        name="pser_kept",
        what="PSER, decay once; priority drops only when the pair is learned",
        report="learned",
    ),
    Process(name="per_algorithm", what=f"PER; {ALGORITHM}", strategy="per"),
    Process(name="pser_algorithm_once", what=f"PSER, decay once; {ALGORITHM}", etas=BOTH_ETAS),
    Process(
        name="pser_algorithm_repeated",
        what=f"PSER, decay at each update; {ALGORITHM}",
        decay="repeated",
        etas=BOTH_ETAS,
    ),
    Process(name="per_paper", what=f"PER; {PAPER}", strategy="per", alpha=0.5, eps=1e-4),
    Process(
        name="pser_paper_once",
        what=f"PSER, decay once; {PAPER}",
        alpha=0.5,
        eps=1e-4,
        window=5,
        etas=BOTH_ETAS,
    ),
    Process(
        name="pser_paper_repeated",
        what=f"PSER, decay at each update; {PAPER}",
        decay="repeated",
        alpha=0.5,
        eps=1e-4,
        window=5,
        etas=BOTH_ETAS,
    ),
    Process(name="per_maxprio", what=f"PER; {MAX_PRIO}", strategy="per", max_prio=True, alpha=0.5, eps=1e-4),
    Process(
        name="pser_maxprio",
        what=f"PSER, decay at each update; {MAX_PRIO}",
        decay="repeated",
        max_prio=True,
        alpha=0.5,
        eps=1e-4,
        window=5,
        etas=BOTH_ETAS,
    ),
)
"""Every process of `pser theorem`, in the order of its output."""


def process_named(name: str) -> Process:
    """The process with this name."""
    for process in PROCESSES:
        if process.name == name:
            return process
    raise PserError(f"no process is called {name!r}: choose one of {', '.join(p.name for p in PROCESSES)}")


def starting_index(
    process: Process, memory: ExhaustiveMemory, rho: float | None, eta: float
) -> pser.PriorityIndex:
    """The memory as the theorem starts it: the goal at |δ| = 1, its predecessors at ρ, ρ² … (or all at 1)."""
    stream = np.zeros(len(memory), dtype=np.int64)
    td_error = None if process.max_prio else memory.rewarded.astype(np.float64)
    if process.strategy == "per" or rho is None:
        index = pser.PriorityIndex(len(memory), pser.PER(alpha=process.alpha, eps=process.eps))
        index.append(memory.first, stream=stream, td_error=td_error)
        return index
    window = memory.states - 1 if process.window is None else process.window
    rules = pser.PSER(alpha=process.alpha, eps=process.eps, eta=eta, rho=rho, window=window)
    index = pser.PriorityIndex(len(memory), rules)
    index.append(memory.first, stream=stream, td_error=td_error)
    if process.decay == "repeated":
        return index
    # The same priorities in an index whose updates do not decay.
    start = index.priority(np.arange(len(memory)))
    still = pser.PSER(alpha=process.alpha, eps=process.eps, eta=eta, rho=rho, window=0)
    index = pser.PriorityIndex(len(memory), still)
    index.append(memory.first, start, stream=stream)
    return index


def steps_to_converge(
    process: Process, states: int, rho: float | None, eta: float, repetitions: int, seed: int
) -> NDArray[np.int64]:
    """The number of updates until Q = Q*, of so many independent repetitions."""
    place = [p.name for p in PROCESSES].index(process.name)
    key = [seed, states, place, round(1e9 * (rho or 0.0)), round(1e9 * eta)]
    draws = np.random.default_rng(np.random.SeedSequence(key))
    memory = exhaustive_memory(states, draws)
    index = starting_index(process, memory, rho, eta)
    loop = compiled_loop(
        memory,
        index,
        replay="prioritized",
        report=process.report,
        step_size=1.0,
        thresholds=[CONVERGED_MSE],
        max_iterations=MAX_REPLAYS * len(memory),
    )
    lengths: list[int] = []
    while len(lengths) < repetitions:
        lengths += loop.repeat(draws.random(DRAWS_PER_BLOCK), repetitions - len(lengths))
    taken = np.array(lengths, dtype=np.int64)
    if (taken < 0).any():
        raise PserError(
            f"{process.name} with {states} states did not converge in {MAX_REPLAYS * len(memory)} updates: "
            "choose fewer states"
        )
    return taken
