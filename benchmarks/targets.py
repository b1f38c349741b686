"""What a run says: medians, paired ratios, and the targets judged."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.coordinate import Measurements
from benchmarks.settings import PLAYED

OURS = "ours"
COPY = "plain_copy"
COMPRESSED = "torchrl_compressed"
SB3 = "sb3_adapter"
ADAPTER = "_adapter"
"""How the module of a library that runs on our priorities ends."""


@dataclass(frozen=True)
class Verdict:
    """A target, what was measured, and whether it is met."""

    target: str
    measured: str
    met: bool


class Numbers:
    """Medians, quartiles and paired ratios of a run."""

    def __init__(self, measured: Measurements) -> None:
        self._times = measured.times_us

    def has(self, case: str, module: str) -> bool:
        """Whether a case was measured."""
        return bool(self._times.get(case, {}).get(module))

    def median(self, case: str, module: str) -> float:
        """Median µs."""
        return statistics.median(self._times[case][module])

    def quartiles(self, case: str, module: str) -> tuple[float, float]:
        """First and third quartile, µs."""
        values = self._times[case][module]
        if len(values) < 2:
            return values[0], values[0]
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        return low, high

    def ratio(self, over: tuple[str, str], under: tuple[str, str]) -> float:
        """Median over the rounds of one case's time over another's in the same round."""
        pairs = zip(self._times[over[0]][over[1]], self._times[under[0]][under[1]], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def peers(self, case: str) -> list[str]:
        """Other libraries measured on a case, each with its own replay (not with ours inside)."""
        others = (module for module in self._times.get(case, {}) if module not in (OURS, COPY))
        return [module for module in others if not module.endswith(ADAPTER)]

    def fastest(self, *cases: str) -> tuple[str, str]:
        """Case and module of the fastest other library; of several cases, each counts with its best."""
        found = [(self.median(case, module), case, module) for case in cases for module in self.peers(case)]
        _, case, module = min(found)
        return case, module


def verdicts(measured: Measurements) -> list[Verdict]:
    """Judge the targets that the run measured."""
    numbers = Numbers(measured)
    names = {module: peer["name"] for module, peer in measured.peers.items()}
    out: list[Verdict] = []

    def judge(target: str, needs: list[str], measure: Callable[[], tuple[str, bool]]) -> None:
        if all(numbers.has(case, OURS) for case in needs):
            text, met = measure()
            out.append(Verdict(target, text, met))

    def at_least(times: float, ours: str, *theirs: str) -> tuple[str, bool]:
        if not any(numbers.peers(case) for case in theirs):
            return "no other library ran", False
        case, module = numbers.fastest(*theirs)
        ratio = numbers.ratio((case, module), (ours, OURS))
        return f"{ratio:.1f}× ({names[module]})", ratio >= times

    def at_most(limit: float, case: str, base: str) -> tuple[str, bool]:
        ratio = numbers.ratio((case, OURS), (base, OURS))
        return f"{ratio:.2f}×", ratio <= limit

    w5, per = "index/learn PSER W=5", "index/learn PER"
    judge(
        "learn step, `PriorityIndex`, 1M, PSER W=5: at least 20× faster than the fastest other library",
        [w5],
        lambda: at_least(20, w5, w5, "memory/learn PSER W=5"),
    )
    judge("PSER W=5 at most 1.35× the cost of PER", [w5, per], lambda: at_most(1.35, w5, per))
    cold, streams = "cold/learn PER", "streams/learn PER"
    for rule, limit, case, base in (
        ("PSER W=20 (ρ = 0.4)", 1.5, "index/learn PSER W=20", per),
        ("PSER W=20 (ρ = 0.8)", 1.9, "index/learn PSER W=20 ρ=0.8", per),
        ("64 streams, PSER W=5", 1.45, "streams/learn PSER W=5", streams),
        (
            "64 streams, batch 512, PSER W=5",
            1.3,
            "streams/learn PSER W=5, batch 512",
            f"{streams}, batch 512",
        ),
        ("cold caches, PSER W=5", 1.25, "cold/learn PSER W=5", cold),
        ("cold caches, PSER W=20 (ρ = 0.8)", 1.4, "cold/learn PSER W=20 ρ=0.8", cold),
        ("cold caches, 64 streams, PSER W=5", 1.3, "cold/learn PSER W=5, 64 streams", f"{cold}, 64 streams"),
    ):
        judge(
            f"{rule} at most {limit}× the cost of PER",
            [case, base],
            lambda limit=limit, case=case, base=base: at_most(limit, case, base),  # type: ignore[misc]
        )
    ten = "index-10m/learn PSER W=5"
    judge("at 10M at most 1.25× its own time at 1M", [ten, w5], lambda: at_most(1.25, ten, w5))
    cold_w5, cold_ten = "cold/learn PSER W=5", "cold-10m/learn PSER W=5"
    judge(
        "cold caches, at 10M at most 1.25× its own time at 1M",
        [cold_ten, cold_w5],
        lambda: at_most(1.25, cold_ten, cold_w5),
    )
    whole = "memory/learn PSER W=5"
    judge(
        "learn step, `ReplayMemory`, 1M, PSER W=5: at least 4× faster than the fastest other library",
        [whole],
        lambda: at_least(4, whole, whole),
    )
    judge(
        "`add` of a step of 1 environment: at least 5× faster than the fastest other library",
        ["memory/add"],
        lambda: at_least(5, "memory/add", "memory/add"),
    )
    judge(
        "`add` of a step of 64 environments: faster than every other library",
        ["vector/add"],
        lambda: at_least(1, "vector/add", "vector/add"),
    )
    sequences = "sequences/learn"
    judge(
        "learn step of 32 sequences of 40 steps: at least 5× faster than the fastest other library",
        [sequences],
        lambda: at_least(5, sequences, sequences),
    )
    tensors = "memory/sample torch"
    if numbers.has(tensors, OURS):
        extra = numbers.median(tensors, OURS) - numbers.median("memory/sample", OURS)
        out.append(Verdict("tensors instead of arrays: at most 5 µs more", f"{extra:.2f} µs", extra <= 5.0))
    for name in ("DQN", "QRDQN", "DDPG", "TD3", "SAC", "TQC"):
        ours, stock = f"train/{name}", f"train/{name} stock"
        if numbers.has(ours, SB3) and numbers.has(stock, SB3):
            ratio = numbers.ratio((ours, SB3), (stock, SB3))
            rule = f"a gradient step of stable-baselines3's {name}, prioritized: at most 1.05× its own"
            out.append(Verdict(rule, f"{ratio:.3f}×", ratio <= 1.05))
    frames = "atari/sample"
    judge("frame batch: faster than every other library", [frames], lambda: at_least(1, frames, frames))
    if numbers.has(frames, OURS) and numbers.has(frames, COPY):
        ratio = numbers.ratio((frames, OURS), (frames, COPY))
        out.append(
            Verdict("frame batch: at most 1.6× a plain copy of the same bytes", f"{ratio:.2f}×", ratio <= 1.6)
        )
    if OURS in measured.resident_bytes:
        held = measured.resident_bytes[OURS]
        out.append(Verdict("at most 7,300 resident bytes per transition", f"{held:,.0f}", held <= 7300))
    games = [g for g in PLAYED if numbers.has(f"compressed {g}/sample", OURS)]
    if games:
        times = {
            g: numbers.ratio((f"compressed {g}/sample", OURS), (f"plain {g}/sample", OURS)) for g in games
        }
        held_of = {g: measured.game_bytes[f"compressed {g}"][OURS] for g in games}
        for what, values, unit, mean_limit, worst_limit in (
            ("resident bytes per transition", held_of, "", 1000.0, 1500.0),
            ("the time of a batch of plain frames", times, "×", 1.3, 2.0),
        ):
            mean, worst = statistics.mean(values.values()), max(values, key=values.__getitem__)
            digits = ",.0f" if unit == "" else ".2f"
            out.append(
                Verdict(
                    f"compressed frames of {len(games)} games and players: at most {mean_limit:g}{unit} {what} on "
                    f"average, {worst_limit:g}{unit} in the worst",
                    f"{mean:{digits}}{unit}, {values[worst]:{digits}}{unit} ({worst})",
                    mean <= mean_limit and values[worst] <= worst_limit,
                )
            )
    return out
