"""One run of a sweep or a study as a value: it can be sent to another process or machine as JSON."""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pser.errors import PserError
from pser.files.atomic import write_text
from pser.records.folder import RunFolder

PARENT = "PSER_SWEEP_PROCESS"
"""Environment variable that tells a job the process of its sweep."""
COST = "cost.json"
"""File of a run's folder that holds the processor time taken so far."""

ENGINES = {"ray": "pser.cluster.training:engine_of"}
"""Name of an engine → the function that makes it of what a manifest says: imported where a job asks for it."""


@dataclass(frozen=True)
class Job:
    """A run: its settings, and the folder that holds all it writes."""

    name: str
    """How the run is called in tables and messages."""
    folder: Path
    """The folder of the run; the run is resumed if it is there already."""
    settings: Mapping[str, Any]
    """All settings of the run, as `pser.learner.settings_json` writes them."""
    preset: str
    """The preset the settings started from."""
    command: str
    """What a person typed to have it run."""
    engine: Mapping[str, Any] | None = None
    """Who carries it out, as its manifest names it; None: the process of the job."""

    def to_json(self) -> str:
        """The job as one line."""
        return json.dumps({**vars(self), "folder": str(self.folder)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The job that `to_json` wrote."""
        plain = json.loads(text)
        return cls(**{**plain, "folder": Path(plain["folder"])})

    @property
    def state(self) -> str:
        """How the run stands: new, running, finished, stopped or failed."""
        return str((RunFolder(self.folder).read_status() or {}).get("state", "new"))


def carry_out(job: Job) -> None:
    """Train as the job says, in this process: start the run, or continue it from its newest checkpoint."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is first imported
    from pser.learner.registry import load
    from pser.learner.settings_json import from_json
    from pser.records.trust import imported_modules
    from pser.run.progress import PlainProgress
    from pser.run.training import resume_run, start_run

    settings = from_json(job.settings)
    engine = None if job.engine is None else load(ENGINES[job.engine["name"]])(job.engine)
    progress = PlainProgress(settings.run.budget_frames)
    if RunFolder(job.folder).manifest.exists():
        resume_run(job.folder, progress, trusted=imported_modules(settings), engine=engine)
    else:
        start_run(settings, job.preset, job.folder, progress, command=job.command, engine=engine)


def main() -> int:
    """Carry out the job on standard input; a broken rule or a disk error ends as one line and exit code 2."""
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until training takes the signals itself
    job = Job.from_json(sys.stdin.read())
    try:
        try:
            carry_out(job)
        finally:
            if RunFolder(job.folder).manifest.exists():
                _add_cost(job.folder)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "pser":
            raise
        return _fail(f"this run needs {error.name}: pip install 'pser[all]'")
    except (PserError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def cpu_seconds(folder: Path) -> float | None:
    """Processor time that the processes of a job have taken; None if none of them ended in good order."""
    try:
        return float(json.loads((folder / COST).read_text())["cpu_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _add_cost(folder: Path) -> None:
    """Add this process's time to that of the earlier parts of the run."""
    total = (cpu_seconds(folder) or 0.0) + time.process_time()
    write_text(folder / COST, json.dumps({"cpu_seconds": round(total, 1)}) + "\n")


def end_with_parent() -> None:
    """End when the sweep that started this process dies, even by SIGKILL (Linux; elsewhere go on)."""
    parent = os.environ.get(PARENT)
    if parent is None or sys.platform != "linux":
        return
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before we asked
        sys.exit(128 + signal.SIGTERM)


def _fail(message: str) -> int:
    print(f"pser: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
