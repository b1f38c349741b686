"""Tune PSER's W, ρ and η: the paper's coordinate descent, and a random search of equal budget beside it.

$ pser tune --games minatar:breakout minatar:freeway --seeds 2 --jobs 2 --out runs/tune
$ pser tune --games gym:CartPole-v1 --eta 0 0.7 --frames 20000 --out runs/tune-cartpole

The same command again goes on. The result says how often resampled seeds would choose the same settings.
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pser.cli.parsing import UNSET
from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The games, the values to try, and how much to spend."""

    games: tuple[str, ...]
    """The games to tune on."""
    out: Path
    """The folder of records, report and unfinished runs."""
    window: tuple[int, ...] = (5, 10, 20)
    """Values of W."""
    rho: tuple[float, ...] = (0.4, 0.65, 0.8)
    """Values of ρ."""
    eta: tuple[float, ...] = (0.0, 0.3, 0.5, 0.7)
    """Values of η."""
    seeds: int = 2
    """Seeds of each setting on each game."""
    frames: Annotated[int | None, UNSET] = None
    """Frames of one run; by default the preset's."""
    initial: Literal["max", "td"] = "max"
    """Priority of new transitions: MaxPrio or CurrentTD."""
    search_seed: int = 0
    """Seed of the random search."""
    jobs: int = 1
    """Runs carried out at the same time (with Ray the CPUs decide)."""
    engine: Literal["local", "ray"] = "local"
    """Where the runs are carried out: on this machine, or as tasks of Ray (docs/cluster.md)."""
    ray_address: Annotated[str | None, UNSET] = None
    """The Ray cluster to join ('auto': the one this machine is part of); without it Ray starts on this machine."""
    max_minutes: Annotated[float | None, UNSET] = None
    """Stop after this time; the same command goes on."""

    def __post_init__(self) -> None:
        for name in ("games", "window", "rho", "eta"):
            if not getattr(self, name):
                raise PserError(f"tuning needs at least one value of {name}: name one")
        for name in ("seeds", "jobs"):
            if getattr(self, name) < 1:
                raise PserError(f"{name} must be at least 1, got {getattr(self, name)}: raise it")


def run(settings: Settings) -> None:
    """Search, then write the report."""
    from pser.cli.study import carry_out_study, executors
    from pser.studies.conduct import Place, read_records
    from pser.studies.report import write_report
    from pser.studies.results import results_of
    from pser.studies.study import Game
    from pser.studies.telling import answer
    from pser.studies.tuning import Tuning, all_choices, arm_of, budget, tell

    values = {"window": settings.window, "rho": settings.rho, "eta": settings.eta}
    shared = {"eval_period_frames": 0, "tensorboard": False, "initial": settings.initial}
    if settings.frames is not None:
        shared["budget_frames"] = settings.frames
    study = Tuning(
        name="tune",
        question="Which W, ρ and η does tuning choose, and how sure is the choice?",
        arms=tuple(arm_of(choice) for choice in all_choices(values)),
        games=tuple(Game(env=env) for env in settings.games),
        seeds=settings.seeds,
        settings=shared,
        values=values,
        search_seed=settings.search_seed,
        stopping=f"when both searches have tried their {budget(values)} settings",
        core_hours=0.0,
        tell=tell,
    )
    place = Place(settings.out / "records", settings.out / "unfinished")
    command = shlex.join(["pser", *sys.argv[1:]])
    make_executor = executors(settings.engine, settings.jobs, settings.ray_address)
    carry_out_study(study, place, command, make_executor, max_minutes=settings.max_minutes)
    results = results_of(study, read_records(place.kept))
    print(answer(results))
    print(f"written: {write_report(results, place.kept)}")
