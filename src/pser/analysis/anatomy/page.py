"""The page on what the priorities are made of: the arithmetic, the simulation, and what follows."""

from collections.abc import Sequence
from dataclasses import dataclass

import pser
from pser.analysis.anatomy.arithmetic import (
    Surprises,
    decay_reach,
    ruled_for_life,
    shrinking_insertion_share,
)
from pser.analysis.anatomy.simulation import Anatomy, Set, simulate
from pser.analysis.markdown import table
from pser.memory.prioritization import PER, PSER, Prioritization

REPLAYS = 8.0
"""The paper's K: batches of 32, one per 4 steps."""


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    prioritization: Prioritization
    initial: str = "max"
    replays: float = REPLAYS

    @property
    def eta(self) -> float:
        """η as far as it holds up what insertion gave; 0 where nothing does."""
        rule = self.prioritization
        return rule.eta if isinstance(rule, PSER) and rule.retain == "all" else 0.0

    def predicted(self, surprises: Surprises) -> float | None:
        """Share ruled by insertion, by the arithmetic; None where that does not hold: for CurrentTD, where nothing is
        inserted at p_max, and for rules that are neither PER nor PSER."""
        if self.initial == "td" or not isinstance(self.prioritization, PER | PSER):
            return None
        return shrinking_insertion_share(surprises, self.eta, self.replays)

    def simulated(self, surprises: Surprises) -> Anatomy:
        """The same by simulation, with all the rest."""
        return simulate(
            Set(
                prioritization=self.prioritization,
                initial=self.initial,
                replays=self.replays,
                surprises=surprises,
            )
        )


def standard_cases() -> list[Case]:
    """PER, and PSER over η, over the initial priority and over the number of replays."""
    return [
        Case("PER", pser.PER(alpha=0.5)),
        *(Case(f"PSER, η = {eta:g}", pser.PSER(eta=eta)) for eta in (0.0, 0.3, 0.5)),
        Case("**PSER, η = 0.7 (the paper)**", pser.PSER(eta=0.7)),
        Case("η = 0.7, 32 replays a life", pser.PSER(eta=0.7), replays=32.0),
        Case("η = 0.7, ρ = 0.8, W = 20", pser.PSER(eta=0.7, rho=0.8, window=20)),
        Case("η = 0, ρ = 0.8, W = 20", pser.PSER(eta=0.0, rho=0.8, window=20)),
        Case("η = 0.7 of what came by decay only", pser.PSER(eta=0.7, retain="decayed")),
        Case("η = 0.7, CurrentTD", pser.PSER(eta=0.7), initial="td"),
    ]


Row = tuple[Case, float | None, Anatomy]


def measure(cases: Sequence[Case], surprises: Surprises) -> list[Row]:
    """Each case predicted and simulated."""
    return [(case, case.predicted(surprises), case.simulated(surprises)) for case in cases]


def anatomy_table(rows: Sequence[Row]) -> str:
    """One line a case."""
    header = [
        "", "insertion", "η's retention", "own TD error", "decay", "insertion + retention, predicted",
        "effective samples", "replay counts, variance / mean", "replays before rewards ÷ others",
    ]  # fmt: skip
    lines = [
        [
            case.name,
            *(f"{share:.3f}" for share in (found.insertion, found.retention, found.own, found.decay)),
            "–" if predicted is None else f"{predicted:.3f}",
            *(f"{value:.2f}" for value in (found.effective_samples, found.evenness, found.near_rewards)),
        ]
        for case, predicted, found in rows
    ]
    return table(header, lines, numeric=range(1, len(header))) + "\n"


def render(rows: Sequence[Row], surprises: Surprises, figure: str) -> str:
    """The page, in Markdown."""
    paper = next(found for case, _, found in rows if "the paper" in case.name)
    return PAGE.format(
        figure=figure,
        table=anatomy_table(rows),
        median=surprises.median,
        spread=surprises.spread,
        reward_share=100 * surprises.reward_share,
        shrink=surprises.shrink,
        paper_insertion=100 * paper.from_insertion,
        paper_decay=100 * paper.decay,
        paper_evenness=paper.evenness,
        for_life=ruled_for_life(0.7, REPLAYS),
        reach=decay_reach(1.0, 0.7, 0.4, REPLAYS),
        reach_small=decay_reach(0.1, 0.7, 0.4, REPLAYS),
        furthest=max(abs(p - f.from_insertion) for _, p, f in rows if p is not None),
    )


PAGE = """# What the priorities are made of

A transition's priority has one of four sources: **insertion** (MaxPrio: the largest ever, p_max), **retention**
of it by η, its **own TD error**, or **backward decay** from a later step. Which one rules is arithmetic. This
page is written by `pser anatomy --page docs/anatomy.md`; `pser anatomy --help` computes it for settings of your
own, or for those of a run.

## Arithmetic

- With batches of B and one update per u steps a transition is replayed **K = B / u** times before it is
  overwritten, whatever the capacity: 8 in the paper.
- A transition is replayed at a rate proportional to its mass. So the mass held by transitions in some state is
  to all mass as the replays that start in that state are to all replays: **counting replays counts mass.**
- One inserted at p_max has the priority max(|δ|, p_max·η^k) after k replays. Insertion rules until k\\* =
  ln(p_max / |δ|) / ln(1/η), and so holds about **E[min(⌈k\\*⌉, K)] / K** of the mass: at least 1/K, the share of
  those never replayed.
- It rules a whole life where |δ| < p_max·η^K: below {for_life:.3f}·p_max with η = 0.7, K = 8.
- A surprise δ_r handed down with ρ^l must exceed what insertion left. At the end of a life it does for **l <
  [K·ln(1/η) − ln(p_max/δ_r)] / ln(1/ρ)** steps: {reach:.1f} for δ_r = p_max with the paper's values,
  {reach_small:.1f} for a tenth of it; and before the end of a life for fewer.

## Beside a simulation

The memory itself (`PriorityIndex`, 20,000 slots filled three times, ρ = 0.4, W = 5, α = 0.5, K = 8 unless said)
driven with made-up errors: |δ| lognormal with median {median:g}·p_max and spread {spread:g}, a reward on
{reward_share:g}% of the steps with |δ| about p_max, every replay leaving {shrink:g} of |δ|.

{table}
![mass by source]({figure})

![what insertion rules](assets/anatomy_insertion.png)

With CurrentTD a transition never replayed has its own TD error already; it is counted under insertion all the same.
The prediction differs from the simulation by at most {furthest:.2f}: it gives each transition exactly K
replays, where large errors are replayed more often than small ones. *Effective samples* is a share of the
memory, 1 for uniform replay. A *variance / mean* of replay counts is 1 for chance; below it the memory deals
out turns more evenly than chance: a rota.

## What follows

- With MaxPrio and the paper's η = 0.7, insertion and its retention hold {paper_insertion:.0f}% of the mass,
  decay {paper_decay:.1f}%, and replay is more even than chance ({paper_evenness:.2f}): the published method
  hardly uses its sequences.
- Decay has mass with **CurrentTD**, with **η ≤ 0.3**, with **many replays a life**, or with retention of what
  came by decay only. Whether that *helps* is another question: [findings from training](findings-training.md).
- `memory.stats()` and every training record tell the shares of a real run; `pser train` says so in one line
  when its settings leave decay next to nothing.
"""
