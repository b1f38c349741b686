"""What the priorities of each arm were made of, from the memory's statistics at the end of its runs."""

from collections.abc import Iterable, Sequence

from pser.analysis.markdown import table
from pser.studies.record import Record
from pser.studies.results import Results

SHARES = {
    "insertion": "memory.mass_from_insertion",
    "retention": "memory.mass_from_retention",
    "own TD error": "memory.mass_from_td_error",
    "decay": "memory.mass_from_decay",
}
"""Source of mass → its column in a record."""
PRIORITIZED = ("per", "pser")
"""Strategies whose priorities are the memory's own; of others it knows no sources."""


def source_table(results: Results) -> str:
    """Arms down, sources across; empty where no record knows its sources."""
    rows = []
    for arm in results.study.arms:
        records = [
            record
            for record in results.records.values()
            if record.arm == arm.name and record.settings["replay"]["replay"] in PRIORITIZED
        ]
        shares = [_mean(_last(record, column) for record in records) for column in SHARES.values()]
        if all(share is not None for share in shares):
            effective = _mean(effective_share(record) for record in records)
            rows.append([arm.name, *(_text(share) for share in (*shares, effective))])
    return table(["arm", *SHARES, "ESS"], rows) + "\n" if rows else ""


def mean_share(results: Results, arm: str, column: str) -> float | None:
    """A column at the end of an arm's runs, mean over all of them."""
    return _mean(_last(record, column) for record in results.records.values() if record.arm == arm)


def effective_share(record: Record) -> float | None:
    """Effective sample size over the size of the memory, at the end of the run."""
    effective = _last(record, "memory.effective_sample_size")
    if effective is None:
        return None
    return effective / float(min(record.final["steps"], record.settings["replay"]["capacity"]))


def _last(record: Record, column: str) -> float | None:
    values: Sequence[float | None] = record.train.get(column, [])
    return values[-1] if values else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
