"""Frames per second of this trainer beside stable-baselines3's DQN: one interleaved run, one thread each.

    python -m benchmarks.train.run [--quick] [--out docs/benchmarks-train.md]

Every contender is a process that stands still until it is its turn; turns follow each other in rounds, so that
whatever else the machine does meets all of them alike. Ratios are medians of the rounds' own ratios.
"""

import argparse
import json
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.train.contenders import CONTENDERS, TASKS, median

ROUNDS = {"minatar": 15, "atari": 11}
QUICK_ROUNDS = 3
TARGETS = {"minatar": 2.0, "atari": 1.25}


def measure(task: str, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Segments of every contender, in rounds."""
    workers = {}
    for name in CONTENDERS:
        command = [sys.executable, "-m", "benchmarks.train.worker", task, name]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert workers[name].stdout.readline() == "ready\n"  # type: ignore[union-attr]
    segments: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    names = list(CONTENDERS)
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            worker = workers[name]
            worker.stdin.write("\n")  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
            answer = json.loads(worker.stdout.readline())  # type: ignore[union-attr]
            if number:  # the first round warms the caches
                segments[name].append(answer)
        print(f"{task}: round {number}/{rounds}", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()
    return segments


def summarise(task: str, segments: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Milliseconds per step, frames per second and ratios; CPU seconds beside wall seconds."""
    steps = TASKS[task].segment_steps
    per_step = 4 if task == "atari" else 1

    def ratio(one: str, other: str, clock: str) -> float:
        pairs = zip(segments[one], segments[other], strict=True)
        return median([a[clock] / b[clock] for a, b in pairs])

    rows = {}
    for name, found in segments.items():
        wall, cpu = median([s["wall"] for s in found]), median([s["cpu"] for s in found])
        rows[name] = {
            "ms_per_step": 1e3 * wall / steps,
            "cpu_ms_per_step": 1e3 * cpu / steps,
            "frames_per_second": per_step * steps / wall,
            "faster_than_sb3": ratio("sb3", name, "wall"),
            "faster_than_sb3_cpu": ratio("sb3", name, "cpu"),
        }
        if "network" in found[0]:
            rows[name]["share_network_and_game"] = median(
                [(s["network"] + s["game"]) / s["wall"] for s in found]
            )
            rows[name]["share_game"] = median([s["game"] / s["wall"] for s in found])
    return {
        "contenders": rows,
        "per_over_uniform": ratio("per", "uniform", "wall"),
        "per_over_uniform_cpu": ratio("per", "uniform", "cpu"),
        "pser_over_per": ratio("pser", "per", "wall"),
        "pser_over_per_cpu": ratio("pser", "per", "cpu"),
        "target_faster_than_sb3": TARGETS[task],
    }


def page(results: dict[str, Any]) -> str:
    """The results as a page of the documentation."""
    lines = [
        "# Training speed",
        "",
        "Written by `make bench-train`. One process per contender, one thread each, turns interleaved, medians.",
        "Same game (through the same code), network, batch (32), update period (one per 4 steps), Adam, gradient",
        "clipping, one environment, ε = 0.1. stable-baselines3 has uniform replay only.",
        "",
        f"Machine: {results['machine']}. Versions: {results['versions']}.",
    ]
    for task, found in results["tasks"].items():
        lines += [
            "",
            f"## {TASKS[task].env} ({found['rounds']} rounds of {TASKS[task].segment_steps:,} steps)",
            "",
            "| trainer | ms per step | frames/s | × stable-baselines3 | network and game |",
            "|---|---|---|---|---|",
        ]
        for name, row in found["contenders"].items():
            share = f"{row['share_network_and_game']:.1%}" if "share_network_and_game" in row else ""
            label = "stable-baselines3 DQN" if name == "sb3" else f"pser, {name}"
            lines.append(
                f"| {label} | {row['ms_per_step']:.3f} | {row['frames_per_second']:,.0f} "
                f"| {row['faster_than_sb3']:.2f} | {share} |"
            )
        lines += [
            "",
            f"PER costs {found['per_over_uniform'] - 1:+.1%} over uniform (CPU time "
            f"{found['per_over_uniform_cpu'] - 1:+.1%}), PSER {found['pser_over_per'] - 1:+.1%} over PER "
            f"(CPU time {found['pser_over_per_cpu'] - 1:+.1%}). Target beside stable-baselines3: "
            f"{found['target_faster_than_sb3']}×.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, for a look")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks-train.md"))
    arguments = parser.parse_args()
    tasks = {}
    for task in arguments.tasks:
        rounds = QUICK_ROUNDS if arguments.quick else ROUNDS[task]
        tasks[task] = summarise(task, measure(task, rounds)) | {"rounds": rounds}
    packages = ("pser", "torch", "numpy", "stable-baselines3", "ale-py", "MinAtar")
    results = {
        "tasks": tasks,
        "machine": platform.platform(),
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in packages),
    }
    arguments.out.write_text(page(results))
    arguments.out.with_suffix(".json").write_text(json.dumps(results, indent=2) + "\n")
    print(page(results))


if __name__ == "__main__":
    main()
