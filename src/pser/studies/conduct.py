"""Carry out a study: its runs through an executor, each kept as it ends."""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import from_json, to_json
from pser.run.executor import Executor
from pser.run.grid import carry_out, refuse_other_settings
from pser.run.job import Job
from pser.studies.notes import changed_settings
from pser.studies.record import Record, read_record, record_of
from pser.studies.study import Planned, Study


@dataclass(frozen=True)
class Place:
    """Where a study lives: what is kept of it, and the folders of runs under way."""

    kept: Path
    scratch: Path

    def record(self, run: Planned) -> Path:
        """The file that is kept of a run."""
        return self.kept / f"{run.path}.json"

    def folder(self, run: Planned) -> Path:
        """The folder of a run under way."""
        return self.scratch / run.path


def read_records(kept: Path) -> dict[str, Record]:
    """Path of each kept run below the study's folder (without .json) → its record."""
    files = sorted(kept.glob("*/*/seed-*.json"))
    return {file.relative_to(kept).with_suffix("").as_posix(): _in_its_place(file) for file in files}


def _in_its_place(file: Path) -> Record:
    """The record in a file that says by its path what it is of."""
    record = read_record(file)
    if (file.parent.name, file.stem) != (record.arm, f"seed-{record.seed}"):
        raise PserError(
            f"{file} is the record of seed {record.seed} of {record.arm!r}: put it where it belongs, or delete it"
        )
    return record


def conduct(
    study: Study,
    place: Place,
    make_executor: Callable[[], Executor],
    *,
    command: str,
    seeds: int | None = None,
    max_seconds: float | None = None,
) -> list[str]:
    """Carry out what is missing, and return the names of the runs that failed.

    A run that another study beside this one has made with the same settings is taken over, not made again.

    Raises `pser.run.grid.TimeUpError` when the time is over; the runs then under way go on from their newest
    checkpoint next time.
    """
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    if told := changed_settings(study, read_records(place.kept).values()):
        print(f"note: {told}: delete their records below {place.kept} to have them made again", flush=True)
    while True:
        records = read_records(place.kept)
        absent = [run for run in study.runs(records, seeds) if run.path not in records]
        if not absent:
            return []
        missing = [run for run in absent if not _take_over(study, run, place)]
        if not missing:
            continue  # what was taken over may decide which runs come next
        jobs = {run.path: _job(study, run, place, command) for run in missing}
        by_name = {jobs[run.path].name: run for run in missing}

        def keep(job: Job, by_name: dict[str, Planned] = by_name) -> None:
            _keep(study, by_name[job.name], job, place)

        with make_executor() as executor:
            failed = carry_out(list(jobs.values()), executor, finished=keep, deadline=deadline)
        if failed:
            return [job.name for job in failed]


def _take_over(study: Study, run: Planned, place: Place) -> bool:
    """Whether a study beside this one has made the run; then it is kept here too."""
    wanted = likeness(study, run)
    for path in sorted(place.kept.parent.glob(f"*/{run.game.folder}/*/seed-{run.seed}.json")):
        if path.is_relative_to(place.kept):
            continue
        record = read_record(path)
        if likeness_of(record) == wanted:
            origin = record.shared_from or record.study
            replace(record, study=study.name, arm=run.arm.name, shared_from=origin).write(place.record(run))
            print(f"{run.name}: taken over from {origin}", flush=True)
            return True
    return False


def likeness(study: Study, run: Planned) -> str:
    """What a run has in common with those that may stand for it: engine and settings, but for the game's spelling."""
    return _likeness(study.settings_of(run), run.arm.engine)


def likeness_of(record: Record) -> str:
    """The same of a run that was made."""
    return _likeness(from_json(record.settings), record.engine)


def _likeness(settings: TrainSettings, engine: Mapping[str, Any] | None) -> str:
    plain = to_json(settings)
    return json.dumps({**plain, "game": {**plain["game"], "env": None}, "engine": engine}, sort_keys=True)


def _job(study: Study, run: Planned, place: Place, command: str) -> Job:
    settings = study.settings_of(run)
    folder = place.folder(run)
    refuse_other_settings(folder, settings)
    return Job(run.name, folder, to_json(settings), study.preset_of(run.game), command, engine=run.arm.engine)


def _keep(study: Study, run: Planned, job: Job, place: Place) -> None:
    """Write the record, then let go of the run's folder: only what is unfinished needs one."""
    record_of(job.folder, study=study.name, arm=run.arm.name).write(place.record(run))
    shutil.rmtree(job.folder)
    for suffix in (".log", ".node"):
        job.folder.with_name(job.folder.name + suffix).unlink(missing_ok=True)


def default_place(study: Study, kept: Path | None, scratch: Path | None) -> Place:
    """results/studies/NAME and runs/studies/NAME, below the current folder, unless others are named."""
    place = Place(kept or Path("results/studies") / study.name, scratch or Path("runs/studies") / study.name)
    if place.kept.resolve() == place.scratch.resolve():
        raise PserError(f"records and runs need different folders, got {place.kept} for both: name another")
    return place
