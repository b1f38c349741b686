"""Theorem 1 of Brittain et al. 2019: what the paper prints, and what its processes really take.

All values are expected numbers of updates until Q = Q* on a Blind Cliffwalk of n states with learning rate 1,
from Q = 0, on the exhaustive memory of 2^(n+1) − 2 transitions, sampled with probability p / Σ p (α = 1 and
ε = 0; uniformly once every priority is 0), priorities starting at the TD error: 1 at the goal, 0 elsewhere.

"Link k" is the transition k steps before the goal *in the goal's own episode*; k = 0 is the goal transition,
and its pair (state, right action) has 2^k copies in memory. Learning must visit the pairs from k = 0 to n−1.
Proportional sampling visits the links in the order in which independent exponential clocks with rates p ring;
the closed forms follow from that. docs/findings.md gives the derivations in words; the tests check each
against a Markov chain over the whole memory.
"""

import math
from collections.abc import Iterable
from functools import cache

MAX_CHAIN_STATES = 7
"""Up to so many states `links_drawn` goes through every combination of priorities."""


def transitions(n: int) -> int:
    """How many transitions the exhaustive memory holds: 2^(n+1) − 2."""
    return (2 << n) - 2


# -------------------------------------------------------------------------------------- what the paper prints


def printed_per(n: int) -> float:
    """1 + (2^(n+1) − 2)(1 − 1/2^(n−1)): PER's expected steps (Theorem 1, main text and appendix)."""
    return 1.0 + transitions(n) * (1.0 - 2.0 ** (1 - n))


def printed_bound_main(n: int, rho: float) -> float:
    """n/(1−ρ) − (ρ − ρ^(n+1))/(1−ρ)²: PSER's bound in the main text and at the end of the proof."""
    return _staircase(n, rho)


def printed_bound_appendix(n: int, rho: float) -> float:
    """The same with 2ρ in place of ρ, and n(n+1)/2 at ρ = 1/2: PSER's bound in the appendix's statement."""
    return _staircase(n, 2.0 * rho)


def _staircase(n: int, ratio: float) -> float:
    """Σ_{i=1}^{n} Σ_{k=0}^{n−i} ratio^k, the double sum both bounds close."""
    if ratio == 1.0:
        return n * (n + 1) / 2.0
    return n / (1.0 - ratio) - (ratio - ratio ** (n + 1)) / (1.0 - ratio) ** 2


# ------------------------------------------------------------------ exact values: the proof's own process (a)


def in_order_probability(m: int, rho: float) -> float:
    """P(links 0 … m−1 are first drawn in this order) = Π_{l=1}^{m} (1−ρ)/(1−ρ^l) = 1/[m]_ρ!."""
    return math.prod(1.0 / sum(rho**k for k in range(length)) for length in range(1, m + 1))


def proof_per(n: int) -> float:
    """PER in the proof's process: 1 step for the goal, then waits Σ_k (2^(n+1)−2)/2^k: as printed."""
    return 1.0 + _uniform_waits(n, (1.0 for _ in range(1, n)))


def proof_pser(n: int, rho: float) -> float:
    """PSER in the proof's process: decay when the memory is filled, a drawn transition drops to 0.

    The n links are drawn once each, without replacement. A link drawn before its turn is lost; after n draws
    every priority is 0 and whatever is missing is awaited uniformly:
    n + (2^(n+1)−2)·Σ_{k=1}^{n−1} 2^−k·(1 − 1/[k+1]_ρ!).
    """
    return n + _uniform_waits(n, (1.0 - in_order_probability(k + 1, rho) for k in range(1, n)))


def kept_pser(n: int, rho: float) -> float:
    """PSER if a draw before its turn left the priority as it was: Σ_i Σ_{k≤n−i} ρ^k, the main text's bound.

    The process for which that bound is exact: the mass left over that of the needed link, at every stage.
    """
    return _staircase(n, rho)


def proof_pser_repeated(n: int, rho: float, gamma: float) -> float | None:
    """PSER when, besides, the TD error found at each update decays backward (as Algorithm 1 does).

    Each learned link hands its predecessors fresh priorities in the ratios 1 : ρ : ρ² …, so nothing is lost
    for good: n + Σ_{l=1}^{n−1} (n−l)·ρ^l/(1+ρ^l). If ρ > γ, older and larger priorities survive and the value
    comes from `links_drawn` instead (None if n is too large for it).
    """
    if _refreshes(n, rho, gamma):
        return n + _early_draws(n, rho, 0.0)
    return links_drawn(n, rho, gamma, drops_when_learned=True)


# ------------------------------------------------------------- exact values: Algorithm 1's own priorities (b)


def algorithm_per(n: int) -> float:
    """PER with p ← |δ| as found *before* the update: all discoveries but the last are at once redrawn."""
    return proof_per(n) + (n - 1)


def algorithm_pser_once(n: int, rho: float, gamma: float) -> float:
    """PSER, p ← |δ| as found before the update (η = 0), decay only when the memory is filled.

    The order of first draws is that of `proof_pser`. Out of order (probability 1 − g_n, g_n = 1/[n]_ρ!) each
    link is drawn once, and each learned pair but the last a second time: 2n − 1, plus the uniform waits. In
    order, link j is drawn a second time before the end unless its clock (rate γ^j) outlasts the stages j+1 …
    n−1, whose total rates are R_i = Σ_{k≥i} ρ^k.
    """
    g_n = in_order_probability(n, rho)
    rest = [sum(rho**k for k in range(i, n)) for i in range(n)]
    repeats = _repeats(rest, gamma, 0.0)
    waits = _uniform_waits(n, (1.0 - in_order_probability(k + 1, rho) for k in range(1, n)))
    return (1.0 - g_n) * (2 * n - 1) + g_n * (n + repeats) + waits


def algorithm_pser_repeated(n: int, rho: float, gamma: float, eta: float) -> float | None:
    """Algorithm 1 with decay at each update: linear in n for η = 0, of order n·ln n / ln(1/η) for η > 0.

    n learning draws; per stage the draws of links before their turn (`_early_draws`); and the draws of links
    already learned, which start at γ^j and fall by η each time, during later stages whose needed link has
    rate ρ·γ^(i−1). If ρ > γ, see `links_drawn` (η = 0 only).
    """
    if not _refreshes(n, rho, gamma):
        return links_drawn(n, rho, gamma, drops_when_learned=False) if eta == 0.0 else None
    stage_rates = [1.0, *(rho * gamma ** (i - 1) for i in range(1, n))]
    return n + _early_draws(n, rho, eta) + _repeats(stage_rates, gamma, eta)


def links_drawn(n: int, rho: float, gamma: float, *, drops_when_learned: bool) -> float | None:
    """Expected draws with decay at each update and η = 0, by going through every state the n links can reach.

    For ρ > γ, where the closed forms do not hold. None above MAX_CHAIN_STATES.
    """
    if n > MAX_CHAIN_STATES:
        return None

    @cache
    def expected(learned: int, priorities: tuple[float, ...]) -> float:
        total = sum(priorities)
        steps = 1.0
        for k, priority in enumerate(priorities):
            if priority == 0.0:
                continue
            after = list(priorities)
            after[k] = 0.0
            if k != learned:  # drawn too early, or once more: its TD error is 0
                steps += priority / total * expected(learned, tuple(after))
            elif learned + 1 < n:
                after[k] = 0.0 if drops_when_learned else gamma**k
                for j in range(k + 1, n):
                    after[j] = max(after[j], rho ** (j - k) * gamma**k)
                steps += priority / total * expected(learned + 1, tuple(after))
        return steps

    return expected(0, tuple(rho**k for k in range(n)))


def _uniform_waits(n: int, missing: Iterable[float]) -> float:
    """(2^(n+1)−2)·Σ_k P(link k is missing)/2^k: a geometric wait for one of the pair's 2^k copies."""
    return transitions(n) * sum(2.0**-k * p for k, p in enumerate(missing, start=1))


def _refreshes(n: int, rho: float, gamma: float) -> bool:
    """Whether a fresh decay always exceeds what older ones left: ρ ≤ γ, or too few links for it to matter."""
    return n <= 2 or rho <= gamma


def _early_draws(n: int, rho: float, eta: float) -> float:
    """Expected draws of links before their turn: in n−d stages a link of rate ρ^d races the needed one."""
    return sum((n - distance) * _draws_before(rho**distance, 1.0, eta) for distance in range(1, n))


def _draws_before(rate: float, rival: float, eta: float) -> float:
    """Expected draws of a clock of `rate`, multiplied by η at each draw, before the rival's first ring."""
    expected, still = 0.0, 1.0
    while still > 1e-17 and rate > 0.0:
        still *= rate / (rate + rival)
        expected += still
        rate *= eta
    return expected


def _repeats(stage_rates: list[float], gamma: float, eta: float) -> float:
    """Expected draws of learned links: link j starts at γ^j after stage j and falls by η at each draw."""
    return sum(_draws_through(gamma**j, stage_rates[j + 1 :], eta) for j in range(len(stage_rates) - 1))


def _draws_through(rate: float, stage_rates: list[float], eta: float) -> float:
    """Expected draws of a clock, falling by η at each, over successive stages that end at the given rates."""
    rates = [rate]
    # Once it has fallen so low it will hardly ring in all the stages together.
    while rates[-1] * sum(1.0 / ends for ends in stage_rates) > 1e-16:
        rates.append(rates[-1] * eta)
    held = [1.0] + [0.0] * (len(rates) - 1)  # how likely it has been drawn so many times
    expected = 0.0
    for ends in stage_rates:
        arriving = 0.0
        for count, current in enumerate(rates):
            here = held[count] + arriving
            arriving = here * current / (current + ends)
            held[count] = here - arriving
            expected += arriving
    return expected
