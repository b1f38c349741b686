"""Run a grid of trainings: every game, replay strategy and seed, each in its own folder.

$ pser sweep --envs minatar:breakout --replay uniform per pser --seeds 0 1 2 --jobs 2 --out runs/breakout

The same command again continues what was interrupted and repeats what failed; finished runs are left alone.
Other settings need another folder.
Every flag of `pser train` may be given, and then holds for all runs.
"""

import itertools
import json
import os
import signal
import sys
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pser.cli.train_flags import flags_class, given_flags
from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import to_json
from pser.records.folder import RunFolder
from pser.records.manifest import read_manifest, settings_of
from pser.run.executor import Executor, Job, LocalProcesses, Outcome

LEFT_OUT = frozenset({"env", "replay", "seed", "initial", "decay"})
REFRESH_SECONDS = 5.0
RECORD_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class _Own:
    """The grid; every other flag changes one setting of all its runs."""

    envs: tuple[str, ...]
    """The games."""
    replay: tuple[Literal["pser", "per", "uniform"], ...] = ("uniform", "per", "pser")
    """The replay strategies."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """The seeds."""
    initial: tuple[Literal["max", "td"], ...] = ("max",)
    """Priorities of new transitions (MaxPrio, CurrentTD); uniform replay has none."""
    decay: tuple[Literal["max", "add"], ...] = ("max",)
    """Decay schemes of PSER; the others have none."""
    out: Path
    """The folder of the sweep; a run lives in OUT/ENV/LABEL/seed-SEED."""
    jobs: int = 1
    """Runs carried out at the same time."""
    preset: Literal["paper", "authors", "minatar", "classic", "fast"] | None = None
    """The settings to start from; by default the one of each game's family."""

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise PserError(f"jobs must be at least 1, got {self.jobs}: raise it")
        for name in ("envs", "replay", "seeds", "initial", "decay"):
            if not getattr(self, name):
                raise PserError(f"a sweep needs at least one value of {name}: name one")


Settings: type[Any] = flags_class("Settings", _Own, leave_out=LEFT_OUT)


def run(settings: Any) -> None:
    """Carry out the grid on this machine; an error at the end names the runs that failed."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    jobs = plan(settings)
    print(f"{len(jobs)} runs in {settings.out}, {settings.jobs} at a time", flush=True)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs are stopped with the sweep
    try:
        with LocalProcesses(settings.jobs) as executor:
            failed = carry_out(jobs, executor)
    except KeyboardInterrupt:
        print("stopped: the same command goes on from the newest checkpoints", flush=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if failed:
        names = ", ".join(job.name for job in failed)
        raise PserError(
            f"{len(failed)} of {len(jobs)} runs failed ({names}): see their .log files, then sweep again"
        )


def plan(settings: Any) -> list[Job]:
    """The runs of the grid, each once; bad settings are refused here, before anything is run."""
    from pser.learner.presets import default_preset, preset_settings

    jobs: dict[str, Job] = {}
    flags = given_flags(settings, LEFT_OUT)
    grid = itertools.product(settings.seeds, settings.envs, settings.replay, settings.initial, settings.decay)
    for seed, env, replay, initial, decay in grid:
        own = {"replay": replay, "initial": initial, "decay": decay, "seed": seed}
        preset = settings.preset or default_preset(env)
        wanted = preset_settings(preset, env).override({**flags, **own})
        label = wanted.replay.label
        folder = settings.out / env.replace(":", "-") / label / f"seed-{seed}"
        name = f"{env} {label} seed {seed}"
        if RunFolder(folder).manifest.exists():
            _refuse_other_settings(folder, wanted)
            arguments = ["train", "--resume", str(folder)]
        else:
            arguments = [
                "train",
                env,
                "--preset",
                preset,
                "--run-dir",
                str(folder),
                *_as_arguments({**own, **flags}),
            ]
        jobs.setdefault(name, Job(name, folder, arguments))
    return list(jobs.values())


def _refuse_other_settings(folder: Path, wanted: TrainSettings) -> None:
    """A run keeps the settings it was started with: do not let it pass for one with others."""
    try:
        saved = to_json(settings_of(read_manifest(RunFolder(folder).manifest)))
    except PserError:
        return  # the run itself will say what is wrong with its manifest
    new = to_json(wanted)
    other = [name for group in new for name in new[group] if new[group][name] != saved[group][name]]
    other = [name for name in other if name != "env"]  # which may be spelled in several ways
    if other:
        raise PserError(
            f"{folder} holds a run with another {', '.join(other)}: use the same settings, or another --out"
        )


def carry_out(jobs: list[Job], executor: Executor) -> list[Job]:
    """Run the jobs that are not finished, report each as it ends, and return those that failed."""
    waiting: dict[Future[Outcome], Job] = {}
    done = 0
    for job in jobs:
        if (RunFolder(job.folder).read_status() or {}).get("state") == "finished":
            done += 1
            print(f"[{done}/{len(jobs)}] {job.name}: was finished before", flush=True)
        else:
            waiting[executor.submit(job)] = job
    failed = []
    states = {job.name: "finished" for job in jobs}
    with _Table(jobs, states) as table:
        while waiting:
            for future, job in waiting.items():
                states[job.name] = "running" if future.running() else "waiting"
            table.refresh()
            ended, _ = wait(waiting, timeout=REFRESH_SECONDS, return_when=FIRST_COMPLETED)
            for future in ended:
                job, outcome = waiting.pop(future), future.result()
                done += 1
                if outcome.code:
                    failed.append(job)
                states[job.name] = "failed" if outcome.code else "finished"
                ending = f"failed: {outcome.message}" if outcome.code else "finished"
                table.say(f"[{done}/{len(jobs)}] {job.name}: {ending}")
        table.refresh()
    return failed


def _as_arguments(values: dict[str, Any]) -> list[str]:
    """Settings as flags of `pser train`."""
    arguments: list[str] = []
    for name, value in values.items():
        items = value if isinstance(value, tuple) else (value,)
        words = ["on" if item is True else "off" if item is False else str(item) for item in items]
        arguments += ["--" + name.replace("_", "-"), *words]
    return arguments


class _Table:
    """The state of all runs, redrawn in place on a terminal; elsewhere only the lines that are said."""

    def __init__(self, jobs: list[Job], states: dict[str, str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._jobs, self._states = jobs, states
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> "_Table":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the table."""
        if self._live:
            self._console.print(line, markup=False, highlight=False)
        else:
            print(line, flush=True)

    def refresh(self) -> None:
        """Read the runs' newest records, and redraw."""
        if not self._live:
            return
        from rich.table import Table

        table = Table("run", "state", "frames", "last evaluation")
        for job in self._jobs:
            folder = RunFolder(job.folder)
            frames = newest(folder.train, "frames", ",.0f")
            table.add_row(
                job.name, self._states[job.name], frames, newest(folder.evaluations, "mean_return", ".2f")
            )
        self._live.update(table, refresh=True)


def newest(record: Path, key: str, how: str) -> str:
    """A number of the newest whole line of a record, or a dash."""
    try:
        with open(record, "rb") as file:
            file.seek(max(0, record.stat().st_size - RECORD_TAIL_BYTES))
            lines = file.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        return format(json.loads(whole[-1])[key], how)
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return "-"
