"""What an update of each agent costs beside plain DQN's: one process, rounds of a few updates in turn, CPU time."""

import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from pser.learner.agent import make_agent
from pser.learner.device import configure_torch
from pser.learner.presets import preset_settings

SHAPE, ACTIONS, BATCH = (4, 10, 10), 3, 32
C51, NOISY, DUELING = {"loss": "c51"}, {"noisy": True}, {"dueling": True}
AGENTS: dict[str, dict[str, Any]] = {
    "dqn": {},
    "double": {"double_q": True},
    "dueling": DUELING,
    "dueling, own layers": {**DUELING, "dueling_shared": False},
    "c51": C51,
    "noisy": NOISY,
    "noisy + dueling + c51": {**C51, **NOISY, **DUELING},
    "noisy + dueling + c51, own layers": {**C51, **NOISY, **DUELING, "dueling_shared": False},
    "rainbow": {**C51, **NOISY, **DUELING, "double_q": True},
    "rainbow, own layers": {**C51, **NOISY, **DUELING, "double_q": True, "dueling_shared": False},
}
LIMITS = {"c51": 1.8, "noisy + dueling + c51": 2.5}
UPDATES = 10
START, END = "<!-- costs: start -->", "<!-- costs: end -->"
PARTS = {
    "[Double Q](#double-q) | `--double-q on` | `double`": ("double",),
    "[dueling](#dueling) | `--dueling on` | `dueling`": ("dueling, own layers", "dueling"),
    "[n-step returns](#n-step-returns) | `--n-step 3` | `n-step`": (),
    "[distributions](#distributions-c51) | `--loss c51` | `c51`": ("c51",),
    "[noise](#noise) | `--noisy on` | `noisy`": ("noisy",),
    "dueling, C51 and noise | |": ("noisy + dueling + c51, own layers", "noisy + dueling + c51"),
    "all five | | `rainbow`": ("rainbow, own layers", "rainbow"),
}
"""Rows of docs/agents.md → the agents whose cost they tell, the last of two with a shared hidden layer."""


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Agent → CPU milliseconds of an update, and the median of the rounds' ratios to DQN's."""
    device, rng = configure_torch("cpu", 1), np.random.default_rng(0)
    batch: Any = SimpleNamespace(
        observation=rng.random((BATCH, *SHAPE)) < 0.08,  # as many cells as Breakout shows
        next_observation=rng.random((BATCH, *SHAPE)) < 0.08,
        action=rng.integers(0, ACTIONS, BATCH),
        reward=rng.random(BATCH).astype(np.float32),
        discount=np.full(BATCH, 0.99, np.float32),
        weights=rng.random(BATCH).astype(np.float32),
    )
    preset = preset_settings("minatar", "minatar:breakout")
    agents = {
        name: make_agent(preset.override(changes), SHAPE, ACTIONS, seed=0, device=device)
        for name, changes in AGENTS.items()
    }
    spent: dict[str, list[float]] = {name: [] for name in agents}
    for number in range(rounds + 1):
        for name, agent in agents.items():
            start = time.process_time()
            for _ in range(UPDATES):
                agent.learn(batch, measure=False)
            if number:  # the first round warms the caches
                spent[name].append((time.process_time() - start) / UPDATES)
    plain = np.array(spent["dqn"])
    return {
        name: {
            "cpu_ms": 1e3 * float(np.median(found)),
            "times_dqn": float(np.median(np.array(found) / plain)),
        }
        for name, found in spent.items()
    }


def section(results: dict[str, dict[str, float]]) -> list[str]:
    """The results as a part of the page."""
    lines = [
        "",
        "## What the parts of Rainbow cost",
        "",
        "One update on MinAtar (batch 32, RMSProp, the streams of a dueling network sharing their hidden layer",
        "unless it says otherwise), CPU time, against plain DQN.",
        "",
        "| agent | CPU ms an update | × DQN | target | |",
        "|---|---|---|---|---|",
    ]
    for name, row in results.items():
        limit = LIMITS.get(name)
        verdict = (
            "| |"
            if limit is None
            else f"| ≤ {limit} | {'met' if row['times_dqn'] <= limit else '**missed**'} "
        )
        lines.append(f"| {name} | {row['cpu_ms']:.3f} | {row['times_dqn']:.2f} {verdict}|")
    return lines


def costs(results: dict[str, dict[str, float]]) -> str:
    """The table of docs/agents.md."""
    rows = ["| part | switch | name | cost of an update |", "|---|---|---|---|"]
    for part, agents in PARTS.items():
        times = [f"{results[agent]['times_dqn']:.1f}" for agent in agents] or ["1.0"]
        rows.append(f"| {part} | {times[0]}{f'; {times[1]} with a shared layer' if times[1:] else ''} |")
    plain = results["dqn"]["cpu_ms"]
    return "\n".join(
        [
            *rows,
            "",
            f"Costs are CPU times of an update on MinAtar against plain DQN's {plain:.2f} ms, as `make bench-train`",
            "measured them ([training speed](benchmarks-train.md)).",
        ]
    )


def with_costs(page: str, results: dict[str, dict[str, float]]) -> str:
    """docs/agents.md with the table put between its two marks."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n\n{costs(results)}\n\n{END}{rest.partition(END)[2]}"
