"""What the Blind Cliffwalk runs say: iterations to a small error, and paired comparisons with intervals.

Rows are those of cliffwalk.json: one run each, with `crossings` from threshold (such as "1e-3") to the first
iteration below it. Runs of one seed share the order of the memory and the draws, so agents are compared seed
by seed: the ratio of their iterations, averaged on the log scale, with a bootstrap interval over the seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.bootstrap import percentile_interval, task_resample
from pser.learner.tabular.q_learning import INITS, Agent

Row: TypeAlias = dict[str, Any]
RESAMPLES = 10_000
CONFIDENCE = 0.99


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: an agent and how its priorities start."""

    agent: Agent
    init: str


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Iterations of one side over those of the other, geometric mean over paired seeds, with its interval."""

    value: float
    low: float
    high: float
    pairs: int
    wins: int
    """Pairs in which the first side needed fewer iterations."""
    censored: int
    """Pairs left out because a run had not crossed when it was given up."""

    @property
    def word(self) -> str:
        """faster or slower if the interval excludes 1, else open."""
        return "faster" if self.high < 1.0 else "slower" if self.low > 1.0 else "open"


class Study:
    """The rows, found by agent, initialisation and number of states."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._found: dict[tuple[Side, int], list[Row]] = {}
        for row in rows:
            agent = Agent(name=row["agent"], rho=row["rho"], eta=row["eta"], decay=row["decay"])
            self._found.setdefault((Side(agent=agent, init=row["init"]), row["states"]), []).append(row)
        self.agents = list(dict.fromkeys(side.agent for side, _ in self._found))
        self.states = sorted({n for _, n in self._found})
        present = {side.init for side, _ in self._found}
        self.inits: list[str] = [init for init in INITS if init in present]
        self.seeds = sorted({row["seed"] for row in rows})
        self.thresholds: list[str] = list(rows[0]["crossings"]) if rows else []

    @property
    def pser_agents(self) -> list[Agent]:
        """PSER in every setting with decay; not PER with η alone."""
        return [agent for agent in self.agents if agent.name == "pser" and agent.rho]

    def runs(self, side: Side, states: int) -> list[Row]:
        """The runs of one side."""
        return self._found.get((side, states), [])

    def crossings(self, side: Side, states: int, threshold: str) -> dict[int, int | None]:
        """Seed → first iteration below the threshold."""
        return {row["seed"]: row["crossings"][threshold] for row in self.runs(side, states)}

    def paired_ratio(self, one: Side, other: Side, states: int, threshold: str) -> Ratio | None:
        """How many times the iterations of `other` does `one` need; None without complete pairs."""
        left = self.crossings(one, states, threshold)
        right = self.crossings(other, states, threshold)
        seeds = sorted(left.keys() & right.keys())
        pairs = [(a, b) for a, b in ((left[s], right[s]) for s in seeds) if a is not None and b is not None]
        if not pairs:
            return None
        logs = np.log([a for a, _ in pairs]) - np.log([b for _, b in pairs])
        value, low, high = mean_interval(logs)
        return Ratio(
            value=float(np.exp(value)),
            low=float(np.exp(low)),
            high=float(np.exp(high)),
            pairs=len(pairs),
            wins=int((logs < 0).sum()),
            censored=len(seeds) - len(pairs),
        )

    def geometric_mean(self, side: Side, states: int, threshold: str) -> float | None:
        """Typical iterations to the threshold; None if a run had not crossed it when it was given up."""
        values = list(self.crossings(side, states, threshold).values())
        known = [value for value in values if value is not None]
        return float(np.exp(np.mean(np.log(known)))) if known and len(known) == len(values) else None


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean and its bootstrap interval; the resampling seed is fixed, so tables stay the same."""
    if len(values) == 1:
        return float(values[0]), -np.inf, np.inf
    draws = values[_resample(len(values))].mean(axis=1)
    estimate = percentile_interval(float(values.mean()), draws, CONFIDENCE)
    return estimate.value, estimate.low, estimate.high


@cache
def _resample(size: int) -> NDArray[np.int64]:
    return task_resample(size, RESAMPLES, np.random.default_rng(0))
