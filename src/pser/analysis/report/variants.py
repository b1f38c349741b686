"""Runs that share a label but not their settings are different algorithms, and are named apart."""

import json
from dataclasses import dataclass, field, replace

from pser.analysis.report.runs import Note, Run
from pser.records.nesting import flatten


@dataclass
class _Group:
    """Runs of one environment and label."""

    runs: list[Run] = field(default_factory=list)

    def settings(self) -> dict[str, list[str]]:
        """Setting → its values in the runs that have it, apart from the seed and the bookkeeping of a run."""
        found: dict[str, list[str]] = {}
        for run in self.runs:
            for key, value in flatten(run.manifest.get("settings") or {}).items():
                if not key.startswith("run.") and key.rpartition(".")[2] not in ("seed", "env"):
                    found.setdefault(key, []).append(json.dumps(value, sort_keys=True))
        return dict(sorted(found.items()))

    def varied(self) -> list[str]:
        """Settings that differ between runs."""
        return [key for key, values in self.settings().items() if len(set(values)) > 1]

    def unknown(self) -> list[str]:
        """Settings that some runs do not have: those of an earlier version, say, which did not know them."""
        return [
            key
            for key, values in self.settings().items()
            if len(values) < len(self.runs) and len(set(values)) == 1
        ]


def tell_variants_apart(runs: list[Run], notes: list[Note]) -> list[Run]:
    """Runs of one label with different settings are different algorithms: the label says in what."""
    groups: dict[tuple[str, str], _Group] = {}
    for run in runs:
        groups.setdefault((run.env, run.label), _Group()).runs.append(run)
    told: list[Run] = []
    for (env, label), group in groups.items():
        varied = group.varied()
        if varied:
            listed = ", ".join(varied)
            notes.append(
                Note(f"{label} on {env} was run with different {listed}: shown as separate variants")
            )
        unknown = group.unknown()
        if unknown:
            some = ", ".join(unknown[:4]) + (f" and {len(unknown) - 4} more" if len(unknown) > 4 else "")
            notes.append(Note(f"{label} on {env}: not all runs record {some}; taken as alike"))
        told.extend(_with_suffix(run, varied) for run in group.runs)
    return told


def _with_suffix(run: Run, varied: list[str]) -> Run:
    if not varied:
        return run
    flat = flatten(run.manifest.get("settings") or {})
    suffix = ", ".join(f"{key.rpartition('.')[2]}={flat.get(key)}" for key in varied)
    return replace(run, label=f"{run.label} [{suffix}]")


def note_duplicates(runs: list[Run], notes: list[Note]) -> None:
    """Say which runs repeat another's environment, label and seed."""
    seen: dict[tuple[str, str, int], str] = {}
    for run in runs:
        key = (run.env, run.label, run.seed)
        if key in seen:
            notes.append(Note(f"same environment, label and seed as {seen[key]}: both are counted", run.name))
        seen[key] = run.name
