"""Run a grid of trainings: every game, agent, replay strategy and seed, each in its own folder.

$ pser sweep --envs minatar:breakout --replay uniform per pser --seeds 0 1 2 --jobs 2 --out runs/breakout
$ pser sweep --envs minatar:breakout --agent rainbow rainbow-no-c51 dqn --replay per --out runs/rainbow
$ pser sweep --envs minatar:breakout --engine ray --ray-address auto --out /shared/runs/breakout

The same command again continues what was interrupted and repeats what failed; finished runs are left alone.
Other settings need another folder.
Every flag of `pser train` may be given, and then holds for all runs.
"""

import itertools
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from pser.cli.parsing import UNSET
from pser.cli.train_flags import (
    AGENT_NAMES,
    PRESET,
    flags_class,
    given_flags,
    parse_flags,
    refuse_unfit_preset,
    shorten_evaluation,
)
from pser.errors import PserError
from pser.learner.family import AGENTS, run_label, switches
from pser.learner.settings_json import to_json
from pser.run.executor import LocalProcesses
from pser.run.grid import carry_out, refuse_other_settings
from pser.run.job import Job

LEFT_OUT = frozenset({"env", "replay", "seed", "initial", "decay"})


@dataclass(frozen=True, kw_only=True)
class _Own:
    """The grid; every other flag changes one setting of all its runs."""

    envs: tuple[str, ...]
    """The games."""
    replay: tuple[Literal["pser", "per", "uniform", "backprop", "reaper", "ebu", "ier", "sequences"], ...] = (
        "uniform",
        "per",
        "pser",
    )
    """The replay strategies; the last five are kin of PSER (docs/kin.md) and need --n-step 1."""
    agent: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="[NAME [NAME ...]]", help_behavior_hint=AGENT_NAMES)
    ] = ()
    """The agents, each with every replay strategy; by default the preset's alone."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """The seeds."""
    initial: tuple[Literal["max", "td"], ...] = ("max",)
    """Priorities of new transitions (MaxPrio, CurrentTD); uniform replay has none."""
    decay: tuple[Literal["max", "add"], ...] = ("max",)
    """Decay schemes of PSER; the others have none."""
    out: Path
    """The folder of the sweep; a run lives in OUT/GAME/LABEL/seed-SEED."""
    jobs: Annotated[int | None, UNSET] = None
    """Runs carried out at the same time; 1 unless given. With Ray the CPUs decide."""
    engine: Literal["local", "ray"] = "local"
    """Where the runs are carried out: on this machine, or as tasks of Ray (docs/cluster.md)."""
    ray_address: Annotated[str | None, UNSET] = None
    """The Ray cluster to join ('auto': the one this machine is part of); without it Ray starts on this machine."""
    cpus_per_run: float = 1.0
    """CPUs that a run takes of Ray's."""
    preset: Annotated[str | None, PRESET] = None
    """The settings to start from; by default the one of each game's family."""

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise PserError(f"jobs must be at least 1, got {self.jobs}: raise it")
        if not self.cpus_per_run > 0.0:
            raise PserError(f"cpus_per_run must be above 0, got {self.cpus_per_run}: 1 is usual")
        if self.engine == "ray" and self.jobs is not None:
            raise PserError(f"with --engine ray the CPUs decide, got --jobs {self.jobs}: use --cpus-per-run")
        if self.engine == "local" and self.ray_address is not None:
            raise PserError(f"--ray-address is for Ray, got {self.ray_address!r}: add --engine ray")
        for name in ("envs", "replay", "seeds", "initial", "decay"):
            if not getattr(self, name):
                raise PserError(f"a sweep needs at least one value of {name}: name one")
        for name in self.agent:
            if name not in AGENTS:
                raise PserError(f"no agent {name!r}: choose one of {', '.join(AGENTS)}")


Settings: type[Any] = flags_class("Settings", _Own, leave_out=LEFT_OUT)


def parse(args: Sequence[str]) -> Any:
    """The settings of a command line."""
    return parse_flags(Settings, _Own, LEFT_OUT, "pser sweep", __doc__ or "", args)


def run(settings: Any) -> None:
    """Carry out the grid, here or on Ray; an error at the end names the runs that failed."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    jobs = plan(settings)
    at_once = f"{settings.jobs or 1} at a time"
    print(
        f"{len(jobs)} runs in {settings.out}, {'on Ray' if settings.engine == 'ray' else at_once}", flush=True
    )
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs are stopped with the sweep
    try:
        if settings.engine == "ray":
            from pser.cluster.sweep import RayTasks

            with RayTasks(settings.ray_address, settings.cpus_per_run) as tasks:
                failed = carry_out(jobs, tasks, where=tasks.where)
        else:
            with LocalProcesses(settings.jobs or 1) as executor:
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
    from pser.learner.games import try_games
    from pser.learner.presets import default_preset, preset_settings
    from pser.learner.replay import check_replay

    jobs: dict[str, Job] = {}
    tried = set()
    flags = given_flags(settings, LEFT_OUT)
    command = shlex.join(["pser", *sys.argv[1:]])
    agents = settings.agent or (None,)
    grid = itertools.product(
        settings.seeds, settings.envs, agents, settings.replay, settings.initial, settings.decay
    )
    for seed, env, agent, replay, initial, decay in grid:
        own = {"replay": replay, "initial": initial, "decay": decay, "seed": seed}
        preset = settings.preset or default_preset(env)
        base = preset_settings(preset, env)
        wanted = base.override({**({} if agent is None else switches(agent, base)), **flags, **own})
        wanted = shorten_evaluation(wanted, flags)
        refuse_unfit_preset(preset, wanted, flags)
        check_replay(wanted)
        if (wanted.game, wanted.evaluation) not in tried:
            try_games(wanted)
            tried.add((wanted.game, wanted.evaluation))
        label = run_label(wanted)
        folder = settings.out / env.replace(":", "-") / label / f"seed-{seed}"
        refuse_other_settings(folder, wanted)
        name = f"{env} {label} seed {seed}"
        jobs.setdefault(name, Job(name, folder, to_json(wanted), preset, command))
    return list(jobs.values())
