"""What the priorities of each arm were made of, from the memory's statistics at the end of its runs."""

from collections.abc import Iterable, Sequence

from pser.analysis.anatomy.text import SOURCES
from pser.analysis.markdown import table
from pser.studies.record import Record
from pser.studies.results import Results
from pser.studies.study import Arm

SHARES = {source: f"memory.mass_from_{name}" for source, name in SOURCES.items()}
"""Source of mass → its column in a record."""
PRIORITIZED = ("per", "pser")
"""Strategies whose priorities are the memory's own; of others it knows no sources."""


def shares_by_arm(results: Results) -> dict[str, dict[str, float]]:
    """Arm → its mass by source at the end of its runs; without arms whose records do not tell."""
    found = {}
    for arm in results.study.arms:
        records = _prioritized(results, arm)
        means = {
            source: _mean(_last(record, column) for record in records) for source, column in SHARES.items()
        }
        known = {source: share for source, share in means.items() if share is not None}
        if len(known) == len(SHARES):
            found[arm.name] = known
    return found


def source_table(results: Results) -> str:
    """Arms down, sources across; empty where no record knows its sources."""
    shares = shares_by_arm(results)
    rows = [
        [arm.name, *(f"{share:.3f}" for share in shares[arm.name].values()), _effective_text(results, arm)]
        for arm in results.study.arms
        if arm.name in shares
    ]
    return table(["arm", *SHARES, "ESS"], rows) + "\n" if rows else ""


def _prioritized(results: Results, arm: Arm) -> list[Record]:
    return [
        record
        for record in results.records.values()
        if record.arm == arm.name and record.settings["replay"]["replay"] in PRIORITIZED
    ]


def _effective_text(results: Results, arm: Arm) -> str:
    value = _mean(effective_share(record) for record in _prioritized(results, arm))
    return "–" if value is None else f"{value:.3f}"


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
