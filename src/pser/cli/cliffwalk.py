"""Blind Cliffwalk, the paper's tabular study: how many replayed transitions each agent needs to learn Q*.

Writes cliffwalk.json (one row a run, and the settings), cliffwalk.csv (curves of the error), cliffwalk.md
(paired comparisons) and the figures. An interrupted command goes on where it stopped when it is called again.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pser.env.blind_cliffwalk import MAX_EXHAUSTIVE_STATES
from pser.errors import PserError
from pser.learner.tabular.q_learning import INITS, KIN, WITHOUT_PRIORITIES, Agent, TabularSettings, run_agent
from pser.run.tabular_jobs import FinishedRuns, Task, check_jobs, make_folder, parse_states, run_all


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which chains, how many seeds, which variants of PSER."""

    states: tuple[str, ...] = ("13..16",)
    """Numbers of states n: single ones or ranges, e.g. 13 14 or 13..16."""
    seeds: int = 10
    """Independent runs of each agent; seed s is the same memory order and draws for every agent."""
    rho: tuple[float, ...] = (0.4, 0.65, 0.8)
    """Decay coefficients ρ of PSER (MAX)."""
    eta: tuple[float, ...] = (0.0, 0.7)
    """Retained shares η of PSER."""
    add_rho: tuple[float, ...] = (0.4,)
    """Decay coefficients with which the ADD scheme runs as well."""
    out: Path = Path("runs/cliffwalk")
    """Output folder."""
    jobs: int = 0
    """Processes; 0 takes one per core. The results do not depend on it."""
    kin: bool = False
    """Run kin of PSER as well: reward back-propagation, episodic backward update, transition sequences, ReaPER,
    introspective replay."""
    quick: bool = False
    """A small version (8 and 10 states, 3 seeds) that ends within seconds."""
    curve_tolerance: float = 0.02
    """Points of a curve closer than this (relative) to the last one written are left out; 0 keeps every
    one."""

    def validate(self) -> None:
        """Raise PserError for the first rule broken.

        Called by `run`: in __post_init__ the argument parser would wrap the message in a box of its own.
        """
        if parse_states(self.states)[-1] > MAX_EXHAUSTIVE_STATES:
            raise PserError(
                f"states is at most {MAX_EXHAUSTIVE_STATES}; got {' '.join(self.states)}: lower it"
            )
        check_jobs(self.jobs)
        if self.seeds < 1:
            raise PserError(f"seeds is at least 1; got {self.seeds}: the paper uses 10")
        if not 0.0 <= self.curve_tolerance < 1.0:
            raise PserError(f"curve_tolerance lies in [0, 1); got {self.curve_tolerance}: choose e.g. 0.02")
        self.agents()

    def agents(self) -> list[Agent]:
        """Every agent of the study, in the order of the output; raises PserError for a bad ρ or η."""
        schemes: list[tuple[Literal["max", "add"], tuple[float, ...]]]
        schemes = [("max", self.rho), ("add", self.add_rho)]
        return [
            Agent(name="uniform"),
            Agent(name="oracle"),
            Agent(name="per"),
            *(
                Agent(name="pser", rho=rho, eta=eta, decay=decay)
                for decay, rhos in schemes
                for rho in rhos
                for eta in self.eta
            ),
            *(Agent(name="pser", rho=0.0, eta=eta, decay="max") for eta in self.eta if eta > 0.0),
            Agent(name="sweeping"),
            Agent(name="backward"),
            *(Agent(name=name) for name in KIN if self.kin),
        ]


def run(settings: Settings) -> None:
    """Run what is missing, then write everything."""
    settings.validate()
    states = (8, 10) if settings.quick else parse_states(settings.states)
    seeds = 3 if settings.quick else settings.seeds
    tabular = TabularSettings()
    depends_on = {"format": 1, **asdict(tabular), "curve_tolerance": settings.curve_tolerance}
    make_folder(settings.out)
    tasks = [
        {**asdict(agent), "init": init, "states": n, "seed": seed, "tolerance": settings.curve_tolerance}
        for n in states
        for agent in settings.agents()
        # An agent without priorities is the same run whatever they start from.
        for init in (INITS[:1] if agent.name in WITHOUT_PRIORITIES else INITS)
        for seed in range(seeds)
    ]
    finished = FinishedRuns(settings.out / "cliffwalk.runs.jsonl", depends_on)
    try:
        results = run_all(tasks, run_task, finished, jobs=settings.jobs, cost=task_cost, title="cliffwalk")
    finally:
        finished.close()
    _write(settings, states, seeds, depends_on, list(zip(tasks, results, strict=True)))


def run_task(task: Task) -> dict[str, Any]:
    """One run, as what is kept of it."""
    from pser.analysis.cliffwalk.curves import thin_curve

    tabular = TabularSettings()
    agent = Agent(name=task["name"], rho=task["rho"], eta=task["eta"], decay=task["decay"])
    limits = [_threshold(limit) for limit in tabular.thresholds]
    outcome = run_agent(agent, task["init"], task["states"], task["seed"], tabular)
    return {
        "crossings": dict(zip(limits, outcome.crossings, strict=True)),
        "mass": None if outcome.masses is None else dict(zip(limits, outcome.masses, strict=True)),
        "first_reward": outcome.first_reward,
        "iterations": outcome.iterations,
        "collapse": outcome.collapse,
        "curve": thin_curve(outcome.curve, tabular.record_every, task["tolerance"]),
    }


def task_cost(task: Task) -> float:
    """Roughly how long a run takes, in arbitrary units: for the order of runs and the time left."""
    slow = task["init"] == "max" and (task["eta"] or 0.0) > 0.0
    per_transition = {"uniform": 1.0, "backward": 1.0, "oracle": 0.0, "sweeping": 0.0}
    return float(2 ** task["states"] * per_transition.get(task["name"], 6.0 if slow else 1.0) + 5000.0)


def _threshold(limit: float) -> str:
    return f"{limit:.0e}".replace("e-0", "e-")


def _write(
    settings: Settings,
    states: Sequence[int],
    seeds: int,
    depends_on: dict[str, Any],
    outcomes: Sequence[tuple[Task, dict[str, Any]]],
) -> None:
    from pser.analysis.cliffwalk.tables import standard_tables
    from pser.files.atomic import write_text

    # Runs without priorities stand under every initialisation.
    rows = [
        {
            "agent": task["name"],
            "init": init,
            **{name: task[name] for name in ("states", "rho", "eta", "decay", "seed")},
            **{name: value for name, value in result.items() if name != "curve"},
            "curve": result["curve"],
        }
        for task, result in outcomes
        for init in (INITS if task["name"] in WITHOUT_PRIORITIES else (task["init"],))
    ]
    order = {agent: k for k, agent in enumerate(settings.agents())}
    rows.sort(key=lambda row: (row["states"], INITS.index(row["init"]), order[_agent(row)], row["seed"]))
    bare = [{name: value for name, value in row.items() if name != "curve"} for row in rows]
    shown = {**depends_on, "states": list(states), "seeds": seeds, "rho": settings.rho, "eta": settings.eta}
    shown |= {"add_rho": settings.add_rho, "gamma": "1 - 1/states"}
    lines = ",\n".join(json.dumps(row) for row in bare)
    write_text(
        settings.out / "cliffwalk.json", f'{{"settings": {json.dumps(shown)},\n"rows": [\n{lines}\n]}}\n'
    )
    write_text(settings.out / "cliffwalk.csv", _csv(rows))
    tables = standard_tables(bare)
    text = "\n\n".join(f"## {name}\n\n{table}" for name, table in tables.items())
    write_text(settings.out / "cliffwalk.md", f"# Blind Cliffwalk: {seeds} paired seeds\n\n{text}\n")
    print(tables["iterations-1e-3"])
    try:
        from pser.analysis.cliffwalk.figures import draw_cliffwalk_figures
    except ModuleNotFoundError as error:
        raise PserError(f"figures need {error.name}: pip install 'pser[plot]'") from error
    draw_cliffwalk_figures(rows, settings.out)
    print(f"written to {settings.out}")


def _agent(row: dict[str, Any]) -> Agent:
    return Agent(name=row["agent"], rho=row["rho"], eta=row["eta"], decay=row["decay"])


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    """One line per run and recorded iteration; runs without priorities once, under init `any`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("agent", "init", "states", "rho", "eta", "decay", "seed")
    writer.writerow((*names, "iteration", "mse"))
    for row in rows:
        free = row["agent"] in WITHOUT_PRIORITIES
        if free and row["init"] != INITS[0]:
            continue
        head = [("any" if free and name == "init" else row[name]) for name in names]
        writer.writerows([*head, iteration, f"{mse:.4g}"] for iteration, mse in row["curve"])
    return text.getvalue()
