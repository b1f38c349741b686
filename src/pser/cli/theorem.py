"""Theorem 1 measured: expected updates until convergence under each reading of it, beside what is printed.

Writes theorem.json (rows with mean, standard error, both printed bounds and the exact value where known),
theorem.md (tables) and the paper's figure with the measured points. An interrupted command goes on where it
stopped.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pser.errors import PserError
from pser.run.tabular_jobs import FinishedRuns, Task, check_jobs, make_folder, parse_states, run_all

LARGEST_STATES = 16


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which chains and decay coefficients, and how many repetitions."""

    states: tuple[str, ...] = ("2..12",)
    """Numbers of states n: single ones or ranges, e.g. 2..12."""
    rho: tuple[float, ...] = (0.2, 0.4, 0.5, 0.8)
    """Decay coefficients ρ."""
    repetitions: int = 4000
    """Independent repetitions behind each mean."""
    seed: int = 0
    """Seed of the draws."""
    out: Path = Path("runs/theorem")
    """Output folder."""
    jobs: int = 0
    """Processes; 0 takes one per core. The results do not depend on it."""
    quick: bool = False
    """A small version (2 to 6 states, 500 repetitions) that ends within seconds."""

    def validate(self) -> None:
        """Raise PserError for the first rule broken.

        Called by `run`: in __post_init__ the argument parser would wrap the message in a box of its own.
        """
        states = parse_states(self.states)
        check_jobs(self.jobs)
        if states[-1] > LARGEST_STATES:
            raise PserError(f"states is at most {LARGEST_STATES} here; got {states[-1]}: updates grow as 2^n")
        for rho in self.rho:
            if not 0.0 < rho < 1.0:
                raise PserError(f"rho lies strictly between 0 and 1; got {rho}: choose e.g. 0.4")
        if self.repetitions < 2 or self.seed < 0:
            raise PserError(
                f"repetitions is at least 2 and seed not negative; got {self.repetitions} and {self.seed}: "
                "use e.g. 4000 and 0"
            )


def run(settings: Settings) -> None:
    """Measure what is missing, then write everything."""
    from pser.learner.tabular.theorem import PROCESSES

    settings.validate()
    states = tuple(range(2, 7)) if settings.quick else parse_states(settings.states)
    repetitions = 500 if settings.quick else settings.repetitions
    depends_on = {"format": 1, "repetitions": repetitions, "seed": settings.seed}
    make_folder(settings.out)
    tasks: list[Task] = [
        {"process": process.name, "states": n, "rho": rho, "eta": eta, **depends_on}
        for process in PROCESSES
        for rho in ((None,) if process.strategy == "per" else settings.rho)
        for eta in process.etas
        for n in states
    ]
    finished = FinishedRuns(settings.out / "theorem.runs.jsonl", depends_on)
    try:
        rows = run_all(tasks, run_task, finished, jobs=settings.jobs, cost=task_cost, title="theorem")
    finally:
        finished.close()
    shown = {**depends_on, "states": list(states), "rho": list(settings.rho), "gamma": "1 - 1/states"}
    shown |= {"learning_rate": 1.0, "processes": {process.name: process.what for process in PROCESSES}}
    _write(settings.out, shown, rows)


def run_task(task: Task) -> dict[str, Any]:
    """One row of theorem.json."""
    from pser.analysis.theorem.rows import theorem_row
    from pser.learner.tabular.theorem import process_named, steps_to_converge

    process = process_named(task["process"])
    cell = (task["states"], task["rho"], task["eta"])
    taken = steps_to_converge(process, *cell, task["repetitions"], task["seed"])
    return theorem_row(process, *cell, taken)


def task_cost(task: Task) -> float:
    """Roughly how long a cell takes, in arbitrary units: for the order of cells and the time left."""
    linear = (
        task["process"] in ("pser_proof_repeated", "pser_kept") or "algorithm_repeated" in task["process"]
    )
    return float(2 ** task["states"] * (0.1 if linear else 1.0) + 20.0)


def _write(folder: Path, settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    from pser.analysis.theorem.rows import theorem_tables
    from pser.files.atomic import write_text

    lines = ",\n".join(json.dumps(row) for row in rows)
    write_text(folder / "theorem.json", f'{{"settings": {json.dumps(settings)},\n"rows": [\n{lines}\n]}}\n')
    tables = theorem_tables(rows)
    text = "\n\n".join(f"## {name}\n\n{table}" for name, table in tables.items())
    write_text(folder / "theorem.md", f"# Theorem 1, measured\n\n{text}\n")
    print(tables["bounds"])
    try:
        from pser.analysis.theorem.figures import draw_theorem_figures
    except ModuleNotFoundError as error:
        raise PserError(f"figures need {error.name}: pip install 'pser[plot]'") from error
    draw_theorem_figures(rows, folder)
    print(f"written to {folder}")
