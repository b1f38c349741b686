"""The sizing model with the measured costs, as tables: for the benchmark's page and for docs/cluster.md."""

from pathlib import Path
from typing import Any

from benchmarks.cluster.tasks import OURS, TASKS
from pser.cluster.sizing import (
    GIGABIT,
    HORGAN,
    USABLE,
    Costs,
    Machine,
    demand,
    most_batches_per_second,
    most_transitions_per_second,
    plan,
)

BEGIN, END = "<!-- written by make bench-ray -->", "<!-- as far as here -->"


def costs_of(results: dict[str, Any], task: str) -> Costs:
    """CPU of all processes, as measured."""
    seconds = results["traffic"][task]["seconds"]
    return Costs(add_seconds=seconds[f"{OURS}: add"]["cpu"], batch_seconds=seconds[f"{OURS}: batch"]["cpu"])


def table(results: dict[str, Any]) -> list[str]:
    """What one shard carries, and what Ape-X as published would ask for."""
    costs = {task: costs_of(results, task) for task in TASKS}
    heads = " | ".join(f"{task.env.split(':')[0]}, batches of {task.batch_size}" for task in TASKS.values())
    lines = [f"| | {heads} |", "|---|" + "---|" * len(TASKS)]

    def row(what: str, cells: list[str]) -> None:
        lines.append(f"| {what} | {' | '.join(cells)} |")

    row("CPU of a transition on its way in", [f"{1e6 * costs[t].add_seconds:.0f} µs" for t in TASKS])
    row("CPU of a batch and its update", [f"{1e3 * costs[t].batch_seconds:.2f} ms" for t in TASKS])
    row(
        "one shard takes at most, transitions/s",
        [f"{_round(most_transitions_per_second(task.transition, costs[t]))}" for t, task in TASKS.items()],
    )
    row(
        "one shard gives at most, batches/s",
        [
            f"{_round(most_batches_per_second(task.batch_size, task.transition, costs[t]))}"
            for t, task in TASKS.items()
        ],
    )
    row(
        "a million transitions in memory",
        [f"{1e-3 * task.transition.kept_bytes:.1f} GB" for task in TASKS.values()],
    )
    asked = demand(HORGAN, TASKS["atari"].transition, costs["atari"])
    ten, one = (plan(asked, Machine(link_bytes_per_second=links * GIGABIT)) for links in (10, 1))
    lines += [
        "",
        f"Ape-X as published ({HORGAN.transitions_per_second:,} transitions and {HORGAN.batches_per_second} batches of "
        f"{HORGAN.batch_size} a second, {HORGAN.capacity / 1e6:.0f} million transitions) asks its shards for "
        f"{asked.ingest_cores:.2f} cores of ingest, {asked.batch_cores:.2f} cores of batches, "
        f"{1e-6 * asked.in_bytes_per_second:.0f} MB/s in, {1e-6 * asked.out_bytes_per_second:.0f} MB/s out and "
        f"{1e-9 * asked.memory_bytes:.0f} GB: shards on 10 Gbit/s links, {ten.shards} ({ten.limit}); on 1 Gbit/s "
        f"links, {one.shards} ({one.limit}), or one on the learner's machine. Cores and links are filled to "
        f"{USABLE:.0%} at most.",
    ]
    return lines


def _round(value: float) -> str:
    """Two figures: the model is not more exact than that."""
    return f"{float(f'{value:.2g}'):,.0f}"


def write_into(page: Path, results: dict[str, Any]) -> None:
    """Put the table between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(
        "\n".join([f"{before}{BEGIN}", "", *table(results), "", f"{END}{after}"]), encoding="utf-8"
    )
