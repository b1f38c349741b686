"""This trainer beside itself before its update was made leaner, and beside a DQN compiled whole by JAX.

Every contender is a process that waits for its turn; ratios are medians over rounds of CPU time, since all have one
thread and the machine may have other things to do.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT, ensure
from benchmarks.peer import JAX

BEFORE = "548a5eaaec46186554dd4172ba6589071c671982"
"""The commit before the update was made leaner."""
TASKS = {"one update a frame": (1, 1), "8 environments, one update per 4 frames": (8, 4)}
NOW = "pser"
TARGETS = {"pser before": ("≥", 1 / 0.80), "JAX, idiomatic": ("≥", 2.4), "JAX, tuned": ("≥", 0.9)}
"""How long the others take in times of ours."""


def ensure_before() -> Path:
    """An interpreter with the earlier version, and for all else this environment's packages."""
    folder = ROOT / ".venv-bench-before"
    python, stamp = folder / "bin" / "python", folder / "commit.stamp"
    if not stamp.exists() or stamp.read_text() != BEFORE:
        print(f"building the version of {BEFORE[:7]} into {folder.name}", file=sys.stderr, flush=True)
        venv.create(folder, clear=True, with_pip=True)
        asked = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
        own = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
        # Paths in such a file come after the environment's own, and hooks of editable packages are not run.
        shared = [path for path in sys.path if path.endswith("site-packages")]
        (own / "shared.pth").write_text("\n".join(shared) + "\n")
        source = folder / "source"
        source.mkdir()
        archive = subprocess.run(["git", "archive", BEFORE], check=True, cwd=ROOT, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", str(source)], check=True, input=archive)
        options = ["--no-build-isolation", "--no-deps", "--quiet"]
        subprocess.run([python, "-m", "pip", "install", *options, str(source)], check=True)
        stamp.write_text(BEFORE)
    return python


def measure(starts: int, rounds: int) -> dict[str, Any]:
    """Task → contender → CPU milliseconds a frame, and times ours."""
    before, with_jax = str(ensure_before()), str(ensure(JAX))
    results: dict[str, Any] = {}
    for task, (envs, period) in TASKS.items():
        plain = ["-m", "benchmarks.train.plain", str(envs), str(period)]
        compiled = [with_jax, "-m", "benchmarks.train.jax_dqn"]
        commands = {
            NOW: [sys.executable, *plain],
            "pser before": [before, *plain],
            "JAX, tuned": [*compiled, "tuned", str(envs), str(period)],
            "JAX, idiomatic": [*compiled, "idiomatic", str(envs), str(period)],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(starts):
            interleave(commands, rounds, spent)
        ours = np.array(spent[NOW])
        results[task] = {
            name: {
                "cpu_ms_per_frame": 1e3 * float(np.median(found)) / 400,
                **ratio_of(np.array(found) / ours),
            }
            for name, found in spent.items()
        }
        print(f"versions: {task}", file=sys.stderr, flush=True)
    return results


def interleave(commands: dict[str, list[str]], rounds: int, spent: dict[str, list[float]]) -> None:
    """Start the contenders, let them work in turns, and note the CPU time of each turn."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    workers = {
        name: subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **one_thread, "OMP_WAIT_POLICY": "PASSIVE"},
        )
        for name, command in commands.items()
    }
    for worker in workers.values():
        assert worker.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    names = list(workers)
    for number in range(rounds + 1):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            worker = workers[name]
            worker.stdin.write("go\n")  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
            answer = json.loads(worker.stdout.readline())  # type: ignore[union-attr]
            if number:  # the first round warms the caches
                spent[name].append(answer["cpu"])
    for worker in workers.values():
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()


def ratio_of(ratios: Any) -> dict[str, float]:
    """The median of the rounds' ratios to ours, with its bootstrap interval."""
    drawn = np.random.default_rng(0).choice(ratios, (2_000, len(ratios)))
    low, high = np.percentile(np.median(drawn, 1), [2.5, 97.5])
    return {"times": float(np.median(ratios)), "low": float(low), "high": float(high)}


def section(results: dict[str, Any]) -> list[str]:
    """The results as a part of the page."""
    lines = [
        "",
        "## Beside itself before, and beside JAX",
        "",
        f"MinAtar Breakout with PER and the settings of the preset `minatar`. *Before* is commit {BEFORE[:7]}. The",
        "JAX peers are a DQN with PER compiled whole, game (gymnax) and memory (flashbax) included: *idiomatic* by",
        "`lax.conv`, *tuned* with the convolution as a product over patches. CPU time, one thread each.",
    ]
    for task, found in results.items():
        lines += ["", f"| {task} | CPU ms a frame | × pser | target | |", "|---|---|---|---|---|"]
        for name, row in found.items():
            shown = f"| {name} | {row['cpu_ms_per_frame']:.3f} |"
            if name in TARGETS:
                sign, least = TARGETS[name]
                met = "met" if row["times"] >= least else "**missed**"
                lines.append(
                    f"{shown} {row['times']:.2f} ({row['low']:.2f} to {row['high']:.2f}) "
                    f"| {sign} {least:.2f} | {met} |"
                )
            else:
                lines.append(f"{shown} 1 | | |")
    return lines
