"""Carry out a declared experiment: its runs, their records, and what they say.

$ pser study --list                              # what each study asks, and how it is decided
$ pser study minatar --jobs 2 --max-minutes 60   # again to go on; every finished run is kept
$ pser study --status                            # how far all of them are; with a name, which runs are there
$ pser study minatar --report                    # page, tables and figures from the records
$ pser study ./mine.py                           # a study of your own
"""

import os
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from pser.cli.parsing import UNSET
from pser.errors import PserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pser.run.executor import Executor
    from pser.studies.conduct import Place
    from pser.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which study, and what to do with it."""

    name: Annotated[
        str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")
    ] = None
    """The study (--list names them), or a Python file that declares one."""
    list: bool = False
    """Print what the study (or each study) declares, and do nothing else."""
    status: bool = False
    """Say which runs are finished, under way and missing; without a study, how far each of them is."""
    report: bool = False
    """Write page, tables and figures from the records."""
    findings: bool = False
    """Write the reports of all studies, docs/findings-training.md, and the summaries of other pages, from all records
    below results/studies."""
    jobs: int = 1
    """Runs carried out at the same time (with Ray the CPUs decide)."""
    engine: Literal["local", "ray"] = "local"
    """Where the runs are carried out: on this machine, or as tasks of Ray (docs/cluster.md)."""
    ray_address: Annotated[str | None, UNSET] = None
    """The Ray cluster to join ('auto': the one this machine is part of); without it Ray starts on this machine."""
    max_minutes: Annotated[float | None, UNSET] = None
    """Stop after this time; the same command goes on."""
    seeds: Annotated[int | None, UNSET] = None
    """Seeds of every arm on every game, instead of the declared numbers: more of them top the study up."""
    arms: tuple[str, ...] = ()
    """Only these arms."""
    games: tuple[str, ...] = ()
    """Only these games."""
    results: Annotated[Path | None, UNSET] = None
    """The folder the records are kept in; by default results/studies/NAME."""
    scratch: Annotated[Path | None, UNSET] = None
    """The folder of runs under way; by default runs/studies/NAME."""

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise PserError(f"jobs must be at least 1, got {self.jobs}: raise it")
        if self.seeds is not None and self.seeds < 1:
            raise PserError(f"seeds must be at least 1, got {self.seeds}: raise it")
        if self.name is None and not (self.list or self.status or self.findings):
            raise PserError("which study? Name one, or see them all with pser study --list")
        if self.report and (self.arms or self.games or self.seeds is not None):
            raise PserError(
                "a report tells all of a study, whatever is there: --report goes without --arms, --games and --seeds"
            )


def run(settings: Settings) -> None:
    """Do what the flags say."""
    from pser.studies.catalogue import NAMES, find_study
    from pser.studies.conduct import default_place, read_records
    from pser.studies.declaration import declaration
    from pser.studies.status import overview_lines, status_lines

    if settings.list:
        names = [settings.name] if settings.name else NAMES
        print("\n\n".join(declaration(find_study(name)) for name in names))
        return
    if settings.findings:
        from pser.studies.findings import write_findings

        for path in write_findings(Path()):
            print(f"written: {path}", flush=True)
        return
    if settings.name is None:
        studies = [find_study(name) for name in NAMES]
        print("\n".join(overview_lines([(study, default_place(study, None, None)) for study in studies])))
        return
    whole = find_study(settings.name)
    study = whole.only(settings.arms, settings.games)
    place = default_place(study, settings.results, settings.scratch)
    if settings.status:
        print("\n".join(status_lines(study, place, settings.seeds)))
    elif settings.report:
        from pser.studies.report import write_report
        from pser.studies.results import results_of

        print(f"written: {write_report(results_of(study, read_records(place.kept)), place.kept)}")
    elif carry_out_study(
        study,
        place,
        shlex.join(["pser", *sys.argv[1:]]),
        executors(settings.engine, settings.jobs, settings.ray_address),
        max_minutes=settings.max_minutes,
        seeds=settings.seeds,
    ):
        print(f"all runs are finished: pser study {settings.name} --report", flush=True)


def executors(engine: str, jobs: int, ray_address: str | None) -> "Callable[[], Executor]":
    """What makes an executor of the engine; with Ray the CPUs decide how many runs there are at a time."""
    if engine == "ray":
        from pser.cluster.sweep import RayTasks

        return lambda: RayTasks(ray_address)
    if ray_address is not None:
        raise PserError(f"--ray-address is for Ray, got {ray_address!r}: add --engine ray")
    from pser.run.executor import LocalProcesses

    return lambda: LocalProcesses(jobs)


def carry_out_study(
    study: "Study",
    place: "Place",
    command: str,
    make_executor: "Callable[[], Executor]",
    *,
    max_minutes: float | None,
    seeds: int | None = None,
) -> bool:
    """Carry out what is missing; whether all of it is there now."""
    from pser.run.grid import TimeUpError
    from pser.studies.conduct import conduct

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs are stopped with the study
    try:
        failed = conduct(
            study,
            place,
            make_executor,
            command=command,
            seeds=seeds,
            max_seconds=None if max_minutes is None else 60 * max_minutes,
        )
    except TimeUpError:
        print("the time is up: the same command goes on from the newest checkpoints", flush=True)
        return False
    except KeyboardInterrupt:
        print("stopped: the same command goes on from the newest checkpoints", flush=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise PserError(
            f"{len(failed)} runs failed ({', '.join(failed)}): see their .log files below {place.scratch}, "
            "then go on with the same command"
        )
    return True
