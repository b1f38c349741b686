"""The replay memory's rules, stated slowly and plainly: the kernel is checked against this page.

Lists, dicts and `math` only. One rule is one small function that cites its equation; "Eq. n" is one of
Brittain et al. 2019 (Prioritized Sequence Experience Replay), "PER" is Schaul et al. 2016.
Words: `priority` is the raw p, `mass` is p^α, `is_weight` goes into the loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Decay goes on while ρ^l·p exceeds `floor`, at most `limit` steps (the paper's future work)."""

    floor: float
    limit: int = 100


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The settings of one prioritization. PER is PSER without η and without decay."""

    kind: str = "pser"  # "pser", "per", "rank" or "uniform"
    alpha: float = 0.5
    eps: float = 1e-4
    eta: float = 0.7
    rho: float = 0.4
    window: int | Adaptive | None = 5
    decay: str = "max"
    retain: str = "all"
    decay_from: str = "td"
    decay_on_insert: bool = True
    stratified: bool = True
    weights: str = "batch"


# -------------------------------------------------------------------------- one rule, one function


def raw_priority(td_error: float, eps: float) -> float:
    """p = |δ| + ε (Eq. 4)."""
    return abs(td_error) + eps


def retained_priority(fresh: float, eta: float, held: float) -> float:
    """p_i ← max(|δ_i| + ε, η·p_i) (the equation against "priority collapse", end of Section 3.2)."""
    return max(fresh, eta * held)


def decayed_priority(source: float, rho: float, steps: int) -> float:
    """ρ^l·p, what reaches the transition l steps back (Eqs. 6 and 7)."""
    return source * rho**steps


def decay_max(held: float, arriving: Iterable[float]) -> float:
    """p_{i−l} ← max(ρ^l·p_i, p_{i−l}), for everything that arrives in one call (Eq. 6)."""
    return max([held, *arriving])


def decay_add(held: float, arriving: Iterable[float], max_priority: float) -> float:
    """p_{i−l} ← min(ρ^l·p_i + p_{i−l}, p_max), for everything that arrives in one call (Eq. 7)."""
    return min(math.fsum([held, *arriving]), max_priority)


def derived_window(rho: float) -> int:
    """W = ⌊ln 0.01 / ln ρ⌋: the last step that still carries at least 1% (Eq. 9, with its sign put right)."""
    if rho == 0.0:
        return 0
    return math.floor(math.log(0.01) / math.log(rho))


def window_length(window: int | Adaptive | None, rho: float, source: float) -> int:
    """How many steps back a decay of `source` reaches: fixed, derived from ρ, or adaptive."""
    if window is None:
        return derived_window(rho)
    if isinstance(window, Adaptive):
        steps = 0
        while steps < window.limit and decayed_priority(source, rho, steps + 1) > window.floor:
            steps += 1
        return steps
    return window


def proportional_mass(priority: float, alpha: float) -> float:
    """p^α, the numerator of Eq. 5. 0^0 is 1: with α = 0 every transition counts the same."""
    return priority**alpha


def rank_masses(priorities: Sequence[float], alpha: float) -> list[float]:
    """(1/rank)^α by decreasing priority (PER, Section 3.3); ties share the mean of their ranks' mass."""
    order = sorted(range(len(priorities)), key=lambda i: -priorities[i])
    masses = [0.0] * len(priorities)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and priorities[order[end]] == priorities[order[start]]:
            end += 1
        shared = math.fsum((1.0 / (r + 1)) ** alpha for r in range(start, end)) / (end - start)
        for r in range(start, end):
            masses[order[r]] = shared
        start = end
    return masses


def probabilities_of(masses: Sequence[float]) -> list[float]:
    """P(i) = p_i^α / Σ_k p_k^α (Eq. 5); without any mass, uniform."""
    total = math.fsum(masses)
    if total == 0.0:
        return [1.0 / len(masses) for _ in masses]
    return [m / total for m in masses]


def is_weight(probability: float, size: int, beta: float) -> float:
    """w_i = (1/N · 1/P(i))^β, before it is divided by the largest (Eq. 11)."""
    return (size * probability) ** -beta


def largest_weight(probabilities: Iterable[float], size: int, beta: float) -> float:
    """The largest weight that any transition with a positive probability could have."""
    return max(is_weight(p, size, beta) for p in probabilities if p > 0.0)


# --------------------------------------------------------------------------------------- the index


@dataclass
class Entry:
    """One retained transition, as the index knows it."""

    stream: int
    predecessor: int | None
    priority: float
    own_mass: float = 0.0  # what its own insertion or last update gave; anything above came by decay
    replays: int = 0  # own updates
    decayed: float = 0.0  # with retain="decayed": the part of its priority that came by decay
    source: str = "own"  # what last determined its priority: "own", "retained" or "decayed"
    tied: bool = False  # a decay equals the priority but for rounding: it may stem from either


def cell_of(slot: int, capacity: int, streams: int) -> int:
    """Where a slot lies along the mass: every 16 steps of all streams are told stream by stream.

    What is left at the end of the ring, less than that, stays in the order of its slots.
    """
    tile, within = divmod(slot, 16 * streams)
    if (tile + 1) * 16 * streams > capacity:
        return slot
    step, stream = divmod(within, streams)
    return tile * 16 * streams + stream * 16 + step


@dataclass
class IndexModel:
    """What `pser.PriorityIndex` must do: a ring of priorities with per-stream, per-episode predecessors."""

    capacity: int
    rules: Rules
    num_streams: int = 1
    entries: dict[int, Entry] = field(default_factory=dict)  # in the order of their ids
    last_of_stream: dict[int, int] = field(default_factory=dict)
    next_id: int = 0
    max_priority: float = 1.0
    updates_applied: int = 0
    updates_skipped_stale: int = 0
    decayed_mass_seen: float = 0.0
    decayed_mass_lost: float = 0.0

    # -------------------------------------------------------------------------------------- reading

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def ids(self) -> list[int]:
        """The retained ids, oldest first."""
        return list(self.entries)

    @property
    def oldest_id(self) -> int:
        """The oldest retained id; the next id when nothing is retained."""
        return next(iter(self.entries), self.next_id)

    def priority(self, transition: int) -> float:
        """The raw priority; NaN once the transition was overwritten."""
        return self.entries[transition].priority if transition in self.entries else math.nan

    def predecessors(self, transition: int) -> Iterator[int]:
        """The earlier transitions of the same stream and episode that are still retained, nearest first."""
        current = self.entries[transition].predecessor
        while current is not None and current in self.entries:
            yield current
            current = self.entries[current].predecessor

    def masses(self) -> dict[int, float]:
        """The mass of every retained transition, by id."""
        priorities = [entry.priority for entry in self.entries.values()]
        if self.rules.kind == "uniform":
            masses = [1.0] * len(priorities)
        elif self.rules.kind == "rank":
            masses = rank_masses(priorities, self.rules.alpha)
        else:
            masses = [proportional_mass(p, self.rules.alpha) for p in priorities]
        return dict(zip(self.entries, masses, strict=True))

    def total_mass(self) -> float:
        """Σ_k p_k^α, the denominator of Eq. 5."""
        return math.fsum(self.masses().values())

    def probabilities(self) -> dict[int, float]:
        """P(i) of every retained transition, by id (Eq. 5)."""
        masses = self.masses()
        return dict(zip(masses, probabilities_of(list(masses.values())), strict=True))

    def weights(self, batch: Sequence[int], beta: float) -> list[float]:
        """The IS weights of a batch, divided by the largest of the batch or of the memory (Eq. 11)."""
        probabilities = self.probabilities()
        size = len(self.entries)
        compared = (
            probabilities.values() if self.rules.weights == "memory" else [probabilities[i] for i in batch]
        )
        largest = largest_weight(compared, size, beta)
        return [is_weight(probabilities[i], size, beta) / largest for i in batch]

    def source_of(self, entry: Entry) -> str:
        """Where a priority stems from; what is a transition's own came by insertion until it was replayed."""
        if entry.source == "own":
            heeds = entry.replays > 0 and self.rules.kind != "uniform"
            return "td_error" if heeds else "insertion"
        return {"retained": "retention", "decayed": "decay"}[entry.source]

    def mass_by_source(self) -> dict[str, float]:
        """The share of the sampling mass by source; every transition counts once, so they sum to 1."""
        probabilities = self.probabilities() if self.entries else {}
        shares = dict.fromkeys(("insertion", "retention", "td_error", "decay"), 0.0)
        for transition, probability in probabilities.items():
            shares[self.source_of(self.entries[transition])] += probability
        return {f"mass_from_{name}": share for name, share in shares.items()}

    def stats(self) -> dict[str, float]:
        """The numbers to watch while training."""
        masses, probabilities = self.masses(), self.probabilities()
        size, total = len(self.entries), self.total_mass()
        decayed = (
            math.fsum(max(0.0, masses[i] - e.own_mass) for i, e in self.entries.items())
            if self.rules.kind in ("pser", "per")
            else 0.0
        )
        replays = [entry.replays for entry in self.entries.values()]
        ages = {i: self.next_id - 1 - i for i in self.entries}
        return {
            "size": size,
            "capacity": self.capacity,
            "added": self.next_id,
            "total_mass": total,
            "max_priority": self.max_priority,
            "effective_sample_size": 1.0 / math.fsum(p * p for p in probabilities.values()) if size else 0.0,
            "decayed_share": decayed / total if total else 0.0,
            "decayed_mass_seen": self.decayed_mass_seen,
            "decayed_mass_lost": self.decayed_mass_lost,
            "collapse": self.decayed_mass_lost / self.decayed_mass_seen if self.decayed_mass_seen else 0.0,
            "age_mean": math.fsum(p * ages[i] for i, p in probabilities.items()),
            "replays_mean": math.fsum(replays) / size if size else 0.0,
            "replays_max": max(replays, default=0),
            "never_replayed_share": replays.count(0) / size if size else 0.0,
            **self.mass_by_source(),
            "updates_applied": self.updates_applied,
            "updates_skipped_stale": self.updates_skipped_stale,
        }

    def is_median_age(self, age: float) -> bool:
        """At least half of the mass is no older than `age`, and at least half no younger, up to rounding."""
        probabilities = self.probabilities()
        newest = self.next_id - 1
        no_older = math.fsum(p for i, p in probabilities.items() if newest - i <= age)
        no_younger = math.fsum(p for i, p in probabilities.items() if newest - i >= age)
        return min(no_older, no_younger) >= 0.5 - 1e-9

    def cumulative_bounds(self) -> dict[int, tuple[float, float]]:
        """The share of the mass, from..to in [0, 1], that draws each id.

        By mass, transitions lie in the order of their cells; without any, by their ids.
        """
        probabilities = self.probabilities()
        order = sorted(probabilities)
        if self.rules.kind != "uniform" and self.total_mass() > 0.0:
            order.sort(key=lambda i: cell_of(i % self.capacity, self.capacity, self.num_streams))
        bounds: dict[int, tuple[float, float]] = {}
        below = 0.0
        for transition in order:
            bounds[transition] = (below, below + probabilities[transition])
            below += probabilities[transition]
        return bounds

    def targets(self, uniforms: Sequence[float]) -> list[float]:
        """Where each draw falls in [0, 1): the j-th of k equal slices when stratified, else anywhere."""
        k = len(uniforms)
        if not self.rules.stratified:
            return list(uniforms)
        return [(j + u) / k for j, u in enumerate(uniforms)]

    # -------------------------------------------------------------------------------------- writing

    def append(
        self,
        first: Sequence[bool],
        stream: Sequence[int] | None = None,
        priority: Sequence[float] | None = None,
        td_error: Sequence[float] | None = None,
    ) -> list[int]:
        """Rows are taken in order; row e is stream e unless `stream` names it."""
        ids = []
        for row, starts in enumerate(first):
            given = None
            if priority is not None:
                given = float(priority[row])
            elif td_error is not None:
                given = raw_priority(float(td_error[row]), self.rules.eps)
            ids.append(self.append_one(bool(starts), row if stream is None else int(stream[row]), given))
        return ids

    def append_one(self, first: bool, stream: int, given: float | None) -> int:
        """One new transition: *MaxPrio* if nothing is given, else *CurrentTD* with decay (Section 3.2)."""
        if len(self.entries) == self.capacity:
            self.evict_before(self.oldest_id + 1)
        transition = self.next_id
        self.next_id += 1
        predecessor = None if first else self.last_of_stream.get(stream)
        self.last_of_stream[stream] = transition
        if self.rules.kind == "uniform":
            self.entries[transition] = Entry(stream, predecessor, 1.0)
            return transition
        priority = self.max_priority if given is None else given
        self.entries[transition] = Entry(stream, predecessor, priority, self.own_mass(priority))
        self.max_priority = max(self.max_priority, priority)
        if given is not None and self.rules.decay_on_insert:
            self.apply_decays({transition: priority})
        return transition

    def evict_before(self, oldest: int) -> None:
        """Forget every transition older than `oldest`."""
        for transition in [i for i in self.entries if i < oldest]:
            del self.entries[transition]

    def update(self, ids: Sequence[int], td_errors: Sequence[float]) -> int:
        """The update of a whole batch, whatever the order of its rows (Algorithm 1 for a batch of one).

        First every distinct transition takes its own update from the priorities held before the call, with
        the largest |δ| if it occurs twice; then all decays are applied. Overwritten ids are skipped.
        """
        rows = [(int(i), float(d)) for i, d in zip(ids, td_errors, strict=True)]
        live = [(i, d) for i, d in rows if i in self.entries]
        self.updates_applied += len(live)
        self.updates_skipped_stale += len(rows) - len(live)
        for transition in {i for i, _ in live}:
            self.entries[transition].replays += 1
        if self.rules.kind == "uniform":
            return len(live)
        fresh: dict[int, float] = {}
        for transition, td_error in live:
            fresh[transition] = max(fresh.get(transition, 0.0), raw_priority(td_error, self.rules.eps))
        for transition, value in fresh.items():
            entry = self.entries[transition]
            before = self.own_mass(entry.priority)
            entry.priority = self.own_update(entry, value)
            self.meter_collapse(entry, before)
            self.max_priority = max(self.max_priority, entry.priority)
        if self.rules.decay_from == "priority":
            self.apply_decays({i: self.entries[i].priority for i in fresh})
        else:
            self.apply_decays(fresh)
        return len(live)

    def own_update(self, entry: Entry, fresh: float) -> float:
        """The priority after an own update, and where it stems from; a tie goes to the TD error."""
        eta = self.rules.eta if self.rules.kind == "pser" else 0.0
        if self.rules.retain == "decayed":
            entry.decayed = eta * entry.decayed  # d_i ← η·d_i
            priority, kept = max(fresh, entry.decayed), "decayed"
        else:
            priority, kept = retained_priority(fresh, eta, entry.priority), "retained"
        entry.source, entry.tied = kept if priority > fresh else "own", False
        return priority

    def set_priorities(self, ids: Sequence[int], priorities: Sequence[float]) -> int:
        """Raw priorities as given, the largest if an id occurs twice: no η, no decay, no replay."""
        rows = [(int(i), float(p)) for i, p in zip(ids, priorities, strict=True)]
        live = [(i, p) for i, p in rows if i in self.entries]
        self.updates_applied += len(live)
        self.updates_skipped_stale += len(rows) - len(live)
        if self.rules.kind == "uniform":
            return len(live)
        for transition in {i for i, _ in live}:
            entry = self.entries[transition]
            entry.priority = max(p for i, p in live if i == transition)
            entry.own_mass = self.own_mass(entry.priority)
            entry.source, entry.decayed, entry.tied = "own", 0.0, False
            self.max_priority = max(self.max_priority, entry.priority)
        return len(live)

    def raise_max_priority(self, priority: float) -> None:
        """What new transitions without a priority are given at least."""
        if self.rules.kind != "uniform":
            self.max_priority = max(self.max_priority, priority)

    def predecessor_rows(self, ids: Sequence[int], steps: int) -> list[list[int]]:
        """The `steps` ids before each, −1 where there is none in memory."""
        rows = []
        for transition in ids:
            earlier = list(self.predecessors(transition))[:steps] if transition in self.entries else []
            rows.append(earlier + [-1] * (steps - len(earlier)))
        return rows

    def own_mass(self, priority: float) -> float:
        """p^α, whatever else is in memory; a rank has no mass of its own."""
        return proportional_mass(priority, self.rules.alpha) if self.rules.kind in ("pser", "per") else 0.0

    def meter_collapse(self, entry: Entry, before: float) -> None:
        """How much mass that came by decay an own update saw, and how much of it that update took away."""
        after = self.own_mass(entry.priority)
        decayed = max(0.0, before - entry.own_mass)
        self.decayed_mass_seen += decayed
        self.decayed_mass_lost += min(decayed, max(0.0, before - after))
        entry.own_mass = after

    def apply_decays(self, sources: dict[int, float]) -> None:
        """Send ρ^l of every source back along its episode, l = 1..W; all that arrives at one place counts."""
        if self.rules.kind != "pser":
            return
        arriving: dict[int, list[float]] = {}
        for transition, source in sources.items():
            reach = window_length(self.rules.window, self.rules.rho, source)
            for steps, earlier in enumerate(self.predecessors(transition), start=1):
                if steps > reach:
                    break
                arriving.setdefault(earlier, []).append(decayed_priority(source, self.rules.rho, steps))
        for earlier, amounts in arriving.items():
            entry = self.entries[earlier]
            held = entry.decayed if self.rules.retain == "decayed" else entry.priority
            if self.rules.decay == "max":
                received = decay_max(held, amounts)
            else:
                received = decay_add(held, amounts, self.max_priority)
            if self.rules.retain == "decayed":
                entry.decayed = received  # d ← max(d, ρ^l·p) or the capped sum; p ← max(p, d)
            largest = max(amounts) if self.rules.decay == "max" else received
            entry.tied |= entry.source != "decayed" and math.isclose(largest, entry.priority, rel_tol=1e-12)
            if received > entry.priority:
                entry.priority, entry.source = received, "decayed"


# -------------------------------------------------------------------------------------- the memory


@dataclass
class Step:
    """One step of one environment, as it was given to `add`."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    given: float | None
    first: bool


@dataclass
class Transition:
    """What a sample must give back for one id."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    discount: float
    terminated: bool


def n_step_return(rewards: Sequence[float], gamma: float) -> float:
    """r_1 + γ·r_2 + … + γ^{m−1}·r_m."""
    return math.fsum(gamma**k * r for k, r in enumerate(rewards))


def n_step_discount(steps: int, gamma: float, terminated: bool) -> float:
    """γ^m·(1 − terminated): what the value of the next observation is multiplied with."""
    return 0.0 if terminated else gamma**steps


@dataclass
class MemoryModel:
    """What `pser.ReplayMemory` must do: n-step accumulation per stream in front of an `IndexModel`."""

    capacity: int
    rules: Rules
    num_envs: int = 1
    n_step: int = 1
    gamma: float = 0.99
    transitions: dict[int, Transition] = field(default_factory=dict)  # every one ever completed, by id
    pending: dict[int, list[Step]] = field(default_factory=dict)
    in_episode: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = IndexModel(self.capacity, self.rules, self.num_envs)

    def add_row(
        self,
        stream: int,
        observation: Any,
        action: Any,
        reward: float,
        next_observation: Any,
        terminated: bool,
        truncated: bool,
        given: float | None = None,
    ) -> list[int]:
        """One step of one environment; returns the ids of the transitions it completed, in order."""
        first = not self.in_episode.get(stream, False)
        steps = self.pending.setdefault(stream, [])
        steps.append(Step(observation, action, reward, next_observation, terminated, given, first))
        ids = []
        if len(steps) == self.n_step:
            ids.append(self.complete_oldest(stream))
        self.in_episode[stream] = not (terminated or truncated)
        if terminated or truncated:
            ids += self.flush(stream)
        return ids

    def end_episode(self, stream: int) -> list[int]:
        """The running episode of a stream is cut here, as if its last step had been truncated."""
        self.in_episode[stream] = False
        return self.flush(stream)

    def flush(self, stream: int) -> list[int]:
        """The tail of an episode: every step still pending becomes a shorter transition."""
        ids = []
        while self.pending.get(stream):
            ids.append(self.complete_oldest(stream))
        return ids

    def complete_oldest(self, stream: int) -> int:
        """The transition from the oldest pending step to the newest one."""
        steps = self.pending[stream]
        start, end = steps[0], steps[-1]
        transition = self.index.append_one(start.first, stream, start.given)
        self.transitions[transition] = Transition(
            start.observation,
            start.action,
            n_step_return([s.reward for s in steps], self.gamma),
            end.next_observation,
            n_step_discount(len(steps), self.gamma, end.terminated),
            end.terminated,
        )
        del steps[0]
        return transition
