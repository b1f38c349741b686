"""What a study keeps of a run: one small JSON file with settings, curves and final figures."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pser.errors import PserError
from pser.files.atomic import write_text
from pser.records.folder import RunFolder
from pser.records.manifest import read_manifest
from pser.records.nesting import flatten
from pser.studies.measures import Curve

FORMAT = 1
LARGEST_BYTES = 60_000
MOST_POINTS = 50
DIGITS = 5
LEFT_OUT = frozenset({"memory.size", "memory.capacity", "memory.added", "memory.total_mass"})
"""Columns that follow from the settings, or that nobody compares."""
SUMS = frozenset({"return_count"})
BY_GAMES = frozenset({"return_mean", "length_mean"})
MEANS = frozenset({"loss", "q_mean", "td_abs_mean", "frames_per_second"})

Columns = dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A finished run."""

    study: str
    env: str
    arm: str
    seed: int
    settings: dict[str, Any]
    preset: str
    command: str
    commit: str | None
    versions: dict[str, str]
    machine: dict[str, Any]
    started: str
    cpu_seconds: float | None
    """Processor time of the run, over all its parts; None if it was not recorded."""
    final: dict[str, Any]
    """Frames, steps, updates and games of the whole run."""
    train: Columns
    """Columns of train.jsonl, in at most 50 rows; the memory's statistics as `memory.NAME`."""
    eval: Columns
    """Columns of eval.jsonl; empty without evaluations."""
    shared_from: str | None = None
    """The study this run was made for, where another has taken it over; its cost is counted there."""
    engine: dict[str, Any] | None = None
    """Who carried the run out, if it was not one process: `cpu_seconds` is then that of the learner alone."""

    @property
    def curve(self) -> Curve:
        """The learning curve, as the measures take it."""
        columns = (self.train["frames"], self.train["return_count"], self.train["return_mean"])
        return [(frames or 0, count or 0, mean or 0.0) for frames, count, mean in zip(*columns, strict=True)]

    def write(self, path: Path) -> None:
        """Write the file, atomically; a record that is too large is refused."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")) + "\n"
        if len(text) > LARGEST_BYTES:
            raise PserError(
                f"a record has at most {LARGEST_BYTES:,} bytes, {path} would have {len(text):,}: "
                "evaluate less often"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)


def read_record(path: Path) -> Record:
    """The record in a file."""
    try:
        plain = json.loads(path.read_text())
        if plain.pop("format") != FORMAT:
            raise ValueError
        record = Record(**plain)
        _check(record)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PserError(
            f"{path} is not a study's record of format {FORMAT}: restore it, or delete it"
        ) from None
    return record


def _check(record: Record) -> None:
    """Raise if the curve, from which all else follows, is not one of finite numbers."""
    if not record.curve or not all(math.isfinite(value) for point in record.curve for value in point):
        raise ValueError
    if not (record.cpu_seconds is None or math.isfinite(record.cpu_seconds)) or record.final["frames"] < 1:
        raise ValueError


def record_of(folder: Path, *, study: str, arm: str) -> Record:
    """The record of a finished run, from its folder."""
    files = RunFolder(folder)
    manifest = read_manifest(files.manifest)
    train = [flatten(row) for row in _rows(files.train)]
    if not train:
        raise PserError(f"{folder} has no training record: let the run finish")
    last = train[-1]
    cost = _cost(folder)
    return Record(
        study=study,
        env=manifest["env"],
        arm=arm,
        seed=manifest["seed"],
        settings=manifest["settings"],
        preset=manifest["preset"],
        command=manifest["command"],
        commit=manifest["commit"],
        versions=manifest["versions"],
        machine={"processor": manifest["machine"]["processor"], "cores": manifest["machine"]["cores"]},
        started=manifest["started"],
        cpu_seconds=None if cost is None else round(cost, 1),
        final={key: last[key] for key in ("frames", "steps", "updates", "episodes") if key in last},
        train=_columns(thinned(train, MOST_POINTS)),
        eval=_columns([flatten(row) for row in _rows(files.evaluations)]),
        engine=manifest.get("engine"),
    )


def thinned(rows: Sequence[Mapping[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most `most` rows: neighbours merged, games weighted by their number, states as they were at the end."""
    group = math.ceil(len(rows) / most)
    return [_merged(rows[start : start + group]) for start in range(0, len(rows), group)]


def _merged(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged = dict(rows[-1])
    for key in merged:
        if key in SUMS:
            merged[key] = sum(row[key] for row in rows)
        elif key in BY_GAMES:
            merged[key] = _mean([(row[key], row["return_count"]) for row in rows])
        elif key in MEANS:
            merged[key] = _mean([(row[key], 1) for row in rows])
    return merged


def _mean(weighted: Iterable[tuple[float | None, float]]) -> float | None:
    known = [(value, weight) for value, weight in weighted if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    names = [name for name in (rows[0] if rows else {}) if name not in LEFT_OUT]
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def _short(value: Any) -> float | None:
    """A number with few digits; whole ones stay whole."""
    if value is None or isinstance(value, bool | int):
        return value
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _cost(folder: Path) -> float | None:
    from pser.run.job import cpu_seconds

    return cpu_seconds(folder)
