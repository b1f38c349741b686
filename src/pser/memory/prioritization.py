"""How transitions are chosen: PSER, PER and uniform, as frozen settings that the kernel's rules are made from."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from pser import _kernel
from pser.errors import is_real, is_whole, make_plain, require, require_flag

LONGEST_WINDOW = 65_536
"""The largest window W the kernel keeps powers of ρ for; ρ^W has long vanished by then."""


def derived_window(rho: float) -> int:
    """W = ⌊ln 0.01 / ln ρ⌋: decay until 1% is left (Brittain et al. 2019, Eq. 9 with its sign corrected)."""
    if rho <= 0.0:
        return 0
    return min(math.floor(math.log(0.01) / math.log(rho)), LONGEST_WINDOW)


@dataclass(frozen=True, kw_only=True)
class AdaptiveWindow:
    """Decay goes on while ρ^l·p exceeds `floor`: the larger a surprise, the further back (the paper's future work)."""

    floor: float
    """The decayed priority at which decay stops."""
    limit: int = 100
    """Decay never reaches further back than this many steps."""

    def __post_init__(self) -> None:
        make_plain(self)
        require(
            is_real(self.floor) and 0 < self.floor < math.inf, "floor must be above 0", self.floor, "try eps"
        )
        require(
            is_whole(self.limit) and 1 <= self.limit <= LONGEST_WINDOW,
            f"limit must be from 1 to {LONGEST_WINDOW}",
            self.limit,
            "try 100",
        )


@dataclass(frozen=True, kw_only=True)
class PSER:
    """Prioritized sequence experience replay: a surprise also raises the priority of the steps that led to it."""

    alpha: float = 0.5
    """α, how much prioritization is used: P(i) ∝ p_i^α. 0 is uniform."""
    eps: float = 1e-4
    """ε, added to |δ| so that no transition is forgotten."""
    eta: float = 0.7
    """η, the share of its previous priority that a transition keeps when it is updated. 0 switches it off."""
    rho: float = 0.4
    """ρ, how much of a priority is handed to each earlier step."""
    window: int | AdaptiveWindow | None = 5
    """W, how many steps decay reaches back; None derives it from ρ (1% left); AdaptiveWindow lets it depend on p."""
    decay: Literal["max", "add"] = "max"
    """MAX keeps the larger of old and decayed priority (Eq. 6); ADD sums them, capped at the largest ever (Eq. 7)."""
    retain: Literal["all", "decayed"] = "all"
    """What η keeps a share of: the whole priority (the paper), or only the part that came by backward decay."""
    decay_from: Literal["td", "priority"] = "td"
    """What decays: the fresh |δ| + ε (Algorithm 1), or the η-retained priority (the authors' code)."""
    decay_on_insert: bool = True
    """Does a priority given on insertion decay backward at once? (Section 3.2: yes; the authors' code: no.)"""
    stratified: bool = True
    """Draw one transition from each of k equal slices of the mass, rather than k independent ones."""
    weights: Literal["batch", "memory"] = "batch"
    """Divide the IS weights by the largest in the batch, or by the largest any stored transition could have."""

    def __post_init__(self) -> None:
        make_plain(self)
        _check_shared(self.alpha, self.eps, self.stratified, self.weights)
        require(
            is_real(self.eta) and 0.0 <= self.eta <= 1.0,
            "eta must be from 0 to 1",
            self.eta,
            "the paper uses 0.7",
        )
        require(
            is_real(self.rho) and 0.0 <= self.rho < 1.0,
            "rho must be from 0 to below 1",
            self.rho,
            "the paper uses 0.4",
        )
        if not (self.window is None or isinstance(self.window, AdaptiveWindow)):
            require(
                is_whole(self.window) and 0 <= self.window <= LONGEST_WINDOW,
                f"window must be a whole number from 0 to {LONGEST_WINDOW}, None or AdaptiveWindow",
                self.window,
                "the paper uses 5",
            )
        require(
            self.decay in ("max", "add"),
            "decay must be 'max' or 'add'",
            self.decay,
            "the paper prefers 'max'",
        )
        require(
            self.decay_from in ("td", "priority"),
            "decay_from must be 'td' or 'priority'",
            self.decay_from,
            "Algorithm 1 decays the TD error",
        )
        require(
            self.retain in ("all", "decayed"),
            "retain must be 'all' or 'decayed'",
            self.retain,
            "the paper retains all",
        )
        require_flag(self.decay_on_insert, "decay_on_insert", "Section 3.2 says True")

    @property
    def reach(self) -> int:
        """The largest number of steps that decay can go back."""
        if self.window is None:
            return derived_window(self.rho)
        return self.window.limit if isinstance(self.window, AdaptiveWindow) else self.window

    def rules(self) -> _kernel.Rules:
        """The kernel's form of these settings."""
        return _rules(
            kind=_kernel.Kind.proportional,
            alpha=self.alpha,
            eps=self.eps,
            eta=self.eta,
            rho=self.rho,
            window=self.reach,
            decay_floor=self.window.floor if isinstance(self.window, AdaptiveWindow) else 0.0,
            add=self.decay == "add",
            retain_decayed=self.retain == "decayed",
            decay_from_priority=self.decay_from == "priority",
            decay_on_insert=self.decay_on_insert,
            stratified=self.stratified,
            weights_by_memory=self.weights == "memory",
        )


@dataclass(frozen=True, kw_only=True)
class PER:
    """Prioritized experience replay (Schaul et al. 2016), proportional or rank-based."""

    alpha: float = 0.6
    """α, how much prioritization is used. 0 is uniform."""
    eps: float = 1e-4
    """ε, added to |δ| so that no transition is forgotten."""
    variant: Literal["proportional", "rank"] = "proportional"
    """P(i) ∝ p_i^α, or P(i) ∝ 1/rank(i)^α where equal priorities share the mass of their ranks."""
    stratified: bool = True
    """Draw one transition from each of k equal slices of the mass, rather than k independent ones."""
    weights: Literal["batch", "memory"] = "batch"
    """Divide the IS weights by the largest in the batch, or by the largest any stored transition could have."""

    def __post_init__(self) -> None:
        make_plain(self)
        _check_shared(self.alpha, self.eps, self.stratified, self.weights)
        require(
            self.variant in ("proportional", "rank"),
            "variant must be 'proportional' or 'rank'",
            self.variant,
            "the PSER paper uses 'proportional'",
        )

    def rules(self) -> _kernel.Rules:
        """The kernel's form of these settings: PSER without decay and without retention."""
        return _rules(
            kind=_kernel.Kind.rank if self.variant == "rank" else _kernel.Kind.proportional,
            alpha=self.alpha,
            eps=self.eps,
            stratified=self.stratified,
            weights_by_memory=self.weights == "memory",
        )


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Every transition is equally likely; TD errors are counted but change nothing."""

    stratified: bool = True
    """Draw one transition from each of k equal slices of the memory, rather than k independent ones."""

    def __post_init__(self) -> None:
        make_plain(self)
        _check_stratified(self.stratified)

    def rules(self) -> _kernel.Rules:
        """The kernel's form of these settings."""
        return _rules(kind=_kernel.Kind.uniform, stratified=self.stratified)


Prioritization = PSER | PER | Uniform
"""Any of the three ways to choose."""


def _rules(**values: Any) -> _kernel.Rules:
    """The kernel's rules with these fields set; the others neither retain nor decay."""
    rules = _kernel.Rules()
    for name, value in values.items():
        setattr(rules, name, value)
    return rules


def _check_stratified(stratified: bool) -> None:
    require_flag(stratified, "stratified", "PER and the PSER paper stratify")


def _check_shared(alpha: float, eps: float, stratified: bool, weights: str) -> None:
    _check_stratified(stratified)
    require(is_real(alpha) and 0.0 <= alpha <= 1.0, "alpha must be from 0 to 1", alpha, "the paper uses 0.5")
    require(
        is_real(eps) and 0.0 <= eps <= 1e100,
        "eps must be a finite number, at least 0",
        eps,
        "the paper uses 1e-4",
    )
    require(
        weights in ("batch", "memory"), "weights must be 'batch' or 'memory'", weights, "most use 'batch'"
    )
