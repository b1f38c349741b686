"""The main job in a few minutes: a small Blind Cliffwalk study, a short training comparison, two pages to look at.

Uniform replay, PER and PSER are trained on MinAtar Breakout for a budget far too small to tell them apart; what the
demo shows is the whole path from memory to report. It calls what `pser cliffwalk --quick`, `pser sweep`,
`pser report` and `pser inspect` call. The same command again goes on where it was stopped.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pser.errors import PserError

GAME = "minatar:breakout"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long, and where to."""

    out: Path = Path("runs/demo")
    """Output folder."""
    frames: int = 60_000
    """Frames of each training run; 2,000 is enough to see every part work."""
    seeds: int = 2
    """Training runs of each replay strategy."""
    jobs: int = 0
    """Processes; 0 takes one per core."""

    def __post_init__(self) -> None:
        if self.frames < 1_000:
            raise PserError(f"frames is at least 1000; got {self.frames}: raise it")
        if self.seeds < 1:
            raise PserError(f"seeds is at least 1; got {self.seeds}: raise it")
        if self.jobs < 0:
            raise PserError(
                f"jobs is the number of processes, 0 for one per core; got {self.jobs}: choose 0 or more"
            )


def run(settings: Settings) -> None:
    """Study, train, report, look into a memory, and name the pages to open."""
    from pser.cli import cliffwalk, inspect, report, sweep
    from pser.records.manifest import read_manifest

    began = time.monotonic()
    jobs = settings.jobs or len(os.sched_getaffinity(0))
    study = settings.out / "cliffwalk"
    # A budget of its own folder: runs of another length are never continued as if they were these.
    runs = settings.out / f"breakout-{settings.frames}"
    page, memory_page = settings.out / "report.html", settings.out / "inspect.html"

    _say("1 of 4: Blind Cliffwalk, 8 and 10 states, 3 seeds")
    cliffwalk.run(cliffwalk.Settings(quick=True, jobs=jobs, out=study))

    _say(f"2 of 4: DQN on {GAME}, {settings.frames:,} frames with each replay strategy and seed")
    sweep.run(
        sweep.Settings(
            envs=(GAME,),
            replay=("uniform", "per", "pser"),
            seeds=tuple(range(settings.seeds)),
            out=runs,
            jobs=jobs,
            **quick_learner(settings.frames),
        )
    )

    _say("3 of 4: the report")
    report.run(report.Settings(runs=(runs,), out=page, title="PSER demo: MinAtar Breakout, a short run"))

    _say("4 of 4: what the memory of a PSER run held, moment by moment")
    manifests = sorted(runs.rglob("manifest.json"))
    watched = next(path.parent for path in manifests if read_manifest(path)["replay"] == "pser")
    inspect.run(inspect.Settings(path=watched, out=memory_page))

    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    _say(f"done in {minutes} min {seconds:02d} s")
    print(f"The study's figures and tables: {study}")
    print(f"Open these pages in a browser:  {page.resolve()}")
    print(f"                                {memory_page.resolve()}")


def quick_learner(frames: int) -> dict[str, Any]:
    """Settings of `pser train` that learn something within the budget: larger steps, 3-step returns, short periods."""
    return {
        "budget_frames": frames,
        "num_envs": 8,
        "n_step": 3,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "optimizer_eps": 1e-8,
        "warmup_steps": min(2_000, frames // 4),
        "update_period_steps": 4,
        "epsilon_end": 0.05,
        "epsilon_decay_steps": frames // 2,
        "target_period_steps": 1_000,
        "eval_period_frames": frames // 6,
        "log_period_frames": frames // 12,
        "checkpoint_period_frames": 0,
        "inspect_period_frames": frames // 12,
    }


def _say(line: str) -> None:
    print(f"\n== {line}", flush=True)
