"""Frames per second of this trainer beside stable-baselines3's DQN: one interleaved run, one thread each.

    python -m benchmarks.train.run [--quick] [--only PART ...] [--out docs/benchmarks-train.md]

Besides: this trainer before its update was made leaner and a DQN compiled by JAX (versions.py), each in an environment
of its own, and what the parts of Rainbow cost (family.py).

A contender is a process that stands still until it is its turn; turns follow each other in rounds, so that whatever
else the machine does meets all alike, and each few rounds the processes are started afresh, since where a process's
arrays happen to lie changes its speed. Ratios are medians of the rounds' own ratios, with a bootstrap interval.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import in_words, machine
from benchmarks.train import family, updates, versions
from benchmarks.train.contenders import CONTENDERS, STRATEGIES, TASKS

STARTS = 4
ROUNDS = {"minatar": 40, "atari": 30}
"""Rounds after each start of the processes."""
SB3 = "stable-baselines3"
TURNS = [("pser", strategy) for strategy in STRATEGIES] + [(SB3, "uniform")]
FASTER = {"minatar": 2.5, "atari": 1.25}
NETWORK_AND_GAME = 0.90
OVER_UNIFORM, OVER_PER = 1.05, 1.01
PACKAGES = ("pser", "torch", "numpy", SB3, "ale-py", "MinAtar")

Segments = dict[str, list[dict[str, float]]]


def measure(task: str, starts: int, rounds: int) -> Segments:
    """Segments of every trainer, by its name; those of one round have one place in every list."""
    segments: Segments = {_name(*turn): [] for turn in TURNS}
    for start in range(starts):
        command = [sys.executable, "-m", "benchmarks.train.worker", task]
        workers = {
            name: subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for name in CONTENDERS
        }
        for worker in workers.values():
            assert worker.stdout.readline() == "ready\n"  # type: ignore[union-attr]
        for number in range(rounds + 1):
            shift = number % len(TURNS)
            for contender, strategy in TURNS[shift:] + TURNS[:shift]:
                worker = workers[contender]
                worker.stdin.write(f"{strategy}\n")  # type: ignore[union-attr]
                worker.stdin.flush()  # type: ignore[union-attr]
                answer = json.loads(worker.stdout.readline())  # type: ignore[union-attr]
                if number:  # the first round warms the caches
                    segments[_name(contender, strategy)].append(answer)
        for worker in workers.values():
            worker.stdin.close()  # type: ignore[union-attr]
            worker.wait()
        print(f"{task}: {start + 1}/{starts}", file=sys.stderr, flush=True)
    return segments


def _name(contender: str, strategy: str) -> str:
    return contender if contender == SB3 else strategy


def summarise(task: str, segments: Segments) -> dict[str, Any]:
    """Milliseconds per step, frames per second, where the time went, and ratios."""
    steps, frames = TASKS[task].segment_steps, TASKS[task].segment_steps * TASKS[task].frames_per_step
    rows: dict[str, Any] = {}
    for name, found in segments.items():
        wall = np.array([segment["wall"] for segment in found])
        rows[name] = {
            "ms_per_step": 1e3 * float(np.median(wall)) / steps,
            "frames_per_second": frames / float(np.median(wall)),
            "times_sb3": ratio(segments[SB3], found),
            "parts": {
                part: float(np.median([segment[part] for segment in found] / wall))
                for part in ("network", "game", "memory")
                if part in found[0]
            },
        }
    return {
        "rounds": len(segments[SB3]),
        "trainers": rows,
        "per_over_uniform": ratio(segments["per"], segments["uniform"]),
        "pser_over_uniform": ratio(segments["pser"], segments["uniform"]),
        "pser_over_per": ratio(segments["pser"], segments["per"]),
        # The memory's own time has far less noise than the whole run's.
        "memory_per_over_uniform": memory_share(segments, "per", "uniform"),
        "memory_pser_over_uniform": memory_share(segments, "pser", "uniform"),
        "memory_pser_over_per": memory_share(segments, "pser", "per"),
    }


def ratio(one: list[dict[str, float]], other: list[dict[str, float]]) -> dict[str, float]:
    """Median of the rounds' ratios of wall time, and a 95 % bootstrap interval of that median."""
    ratios = np.array([a["wall"] / b["wall"] for a, b in zip(one, other, strict=True)])
    drawn = np.random.default_rng(0).choice(ratios, (2_000, len(ratios)))
    low, high = np.percentile(np.median(drawn, 1), [2.5, 97.5])
    return {"median": float(np.median(ratios)), "low": float(low), "high": float(high)}


def memory_share(segments: Segments, one: str, other: str) -> float:
    """How much more time the one's memory takes, as a share of the other's whole run."""
    more = np.median([a["memory"] - b["memory"] for a, b in zip(segments[one], segments[other], strict=True)])
    return float(more / np.median([segment["wall"] for segment in segments[other]]))


def checks(task: str, found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """(what, target, measured, whether it is met)."""
    uniform = found["trainers"]["uniform"]
    faster = uniform["times_sb3"]["median"]
    rows = [(f"uniform beside {SB3}", f"≥ {FASTER[task]}×", f"{faster:.2f}×", faster >= FASTER[task])]
    if task == "atari":
        share = uniform["parts"]["network"] + uniform["parts"]["game"]
        target = f"≥ {NETWORK_AND_GAME:.0%}"
        rows.append(("time in network and emulator", target, f"{share:.1%}", share >= NETWORK_AND_GAME))
    for what, key, limit in (
        ("PER over uniform", "per_over_uniform", OVER_UNIFORM),
        ("PSER over uniform", "pser_over_uniform", OVER_UNIFORM),
        ("PSER over PER", "pser_over_per", OVER_PER),
    ):
        whole, memory = found[key], found[f"memory_{key}"]
        shown = f"{whole['median'] - 1:+.1%} ({whole['low'] - 1:+.1%} to {whole['high'] - 1:+.1%})"
        shown += f"; by the memory's own time {memory:+.2%}"
        rows.append((what, f"≤ {limit - 1:+.0%}", shown, whole["median"] <= limit and memory <= limit - 1))
    return rows


def page(results: dict[str, Any]) -> str:
    """The results as a page of the documentation."""
    lines = [
        "# Training speed",
        "",
        "Written by `make bench-train`. Both trainers have one thread, the same game (through the same code), network,",
        "batch (32), update period (one per 4 steps), Adam, gradient clipping, one environment, ε = 0.1; turns are",
        "interleaved, the processes started afresh several times, numbers are medians, brackets 95 % intervals.",
        "stable-baselines3 has uniform replay only. The three strategies share one process, agent and game, and",
        "exchange the memory: only its cost can differ.",
        "",
        f"{in_words(results['machine'])}. Versions: {results['versions']}.",
    ]
    for task, found in results.get("trainers", {}).items():
        lines += [
            "",
            f"## {TASKS[task].env} ({found['rounds']} rounds of {TASKS[task].segment_steps:,} steps)",
            "",
            f"| trainer | ms per step | frames/s | × {SB3} | network | game | memory |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, row in found["trainers"].items():
            parts = [
                f"{row['parts'][part]:.1%}" if row["parts"] else "" for part in ("network", "game", "memory")
            ]
            times, label = row["times_sb3"], f"{SB3} DQN" if name == SB3 else f"pser, {name}"
            beside = (
                "1" if name == SB3 else f"{times['median']:.2f} ({times['low']:.2f} to {times['high']:.2f})"
            )
            speed = f"{row['ms_per_step']:.3f} | {row['frames_per_second']:,.0f}"
            lines.append(f"| {label} | {speed} | {beside} | {' | '.join(parts)} |")
        lines += ["", "| | target | measured | |", "|---|---|---|---|"]
        lines += [
            f"| {what} | {target} | {measured} | {'met' if met else '**missed**'} |"
            for what, target, measured, met in checks(task, found)
        ]
    for part, section in SECTIONS.items():
        if part in results:
            lines += section(results[part])
    return "\n".join(lines) + "\n"


def _trainers(starts: int, quick: bool) -> dict[str, Any]:
    return {task: summarise(task, measure(task, starts, 5 if quick else ROUNDS[task])) for task in TASKS}


PARTS: dict[str, Callable[[int, bool], dict[str, Any]]] = {
    "trainers": _trainers,
    "beside": lambda starts, quick: versions.measure(starts, 5 if quick else 25),
    "updates": lambda starts, quick: updates.measure(starts, 10 if quick else 40),
    "family": lambda _, quick: family.measure(20 if quick else 200),
}
"""Part of the page → what measures it, started so often, quickly or not."""
SECTIONS = {"beside": versions.section, "updates": updates.section, "family": family.section}


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, for a look")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="measure these parts, and keep what is known of others"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks-train.md"))
    arguments = parser.parse_args()
    quick, only, data = arguments.quick, arguments.only, arguments.out.with_suffix(".json")
    results: dict[str, Any] = json.loads(data.read_text()) if only and data.exists() else {}
    results["machine"] = machine()
    results["versions"] = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    for part, measured in PARTS.items():
        if not only or part in only:
            results[part] = measured(1 if quick else STARTS, quick)
    arguments.out.write_text(page(results))
    data.write_text(json.dumps(results, indent=2) + "\n")
    if not quick and "family" in results:
        agents = arguments.out.parent / "agents.md"
        agents.write_text(family.with_costs(agents.read_text(), results["family"]))
    print(page(results))


if __name__ == "__main__":
    main()
