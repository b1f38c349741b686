"""docs/benchmarks-large.md: what `make bench-big` and `make bench-checkpoint` measured, one column a run.

`python -m benchmarks.large FILE ...` takes in what either wrote with `--output`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import in_words

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-large.md"
DATA = PAGE.with_suffix(".json")

BIG = {
    "add_us": "add, µs a transition",
    "sample_later_us": "sample 32, µs",
    "update_later_us": "update 32, µs",
    "save_whole_s": "first `save_changes` (all), s",
    "save_whole_files_gb": "its files, GB",
    "save_changes_again_s": "`save_changes` after new steps, s",
    "changes_over_whole": "share of the time of the first",
    "snapshot_ms": "call in the background returns after, ms",
    "longest_step_while_saving_ms": "longest step while it is written, ms",
}
CHECKPOINT = {
    "whole_seconds": "whole checkpoint, s",
    "whole_cpu_seconds": "whole checkpoint, CPU s",
    "whole_mb": "whole checkpoint, MB",
    "changes_seconds": "checkpoint after new steps, s",
    "changes_cpu_seconds": "checkpoint after new steps, CPU s",
    "changes_mb": "checkpoint after new steps, MB",
    "ratio_of_seconds": "share of the time of a whole one",
    "ratio_of_cpu_seconds": "share of its CPU time",
    "ratio_of_mb": "share of its bytes",
    "whole_pause_ms": "training stands still, whole, ms (median)",
    "whole_pause_ms_most": "the longest, ms",
    "whole_pause_cpu_ms": "CPU time of it, ms (median)",
    "changes_pause_ms": "training stands still, new steps, ms (median)",
    "changes_pause_ms_most": "the longest, ms",
    "changes_pause_cpu_ms": "CPU time of it, ms (median)",
    "whole_longest_step_ms": "longest training step while a whole one is written, ms",
    "changes_longest_step_ms": "longest training step while new steps are written, ms",
    "peak_gb": "most memory the process ever held, GB",
}


def take_in(found: dict[str, Any]) -> None:
    """Keep the numbers of a run, in place of an earlier one of the same kind, and write the page."""
    kept: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {}
    kind = "checkpoint" if "whole_pause_ms" in found else f"big {found['storage']}"
    kept[f"{kind} {found['frames']} {found['transitions']}"] = found
    DATA.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(kept))


def page(kept: dict[str, Any]) -> str:
    """The page of what is kept."""
    lines = ["# Large memories, measured", ""]
    lines += [
        "By `make bench-big` and `make bench-checkpoint` with `--record`, or from its `--output`; do not edit.",
        "",
    ]
    lines += ["## Size and speed", "", *_table(kept, "big", BIG)]
    lines += ["## Checkpoints", ""]
    lines += [
        "Those of a run: each writes what is new since the one before the last, so that the two kept share no file.",
        "",
        *_table(kept, "checkpoint", CHECKPOINT),
        "Times are wall time unless it says CPU; a busy machine lengthens them. The load is that before the run.",
        "",
    ]
    return "\n".join(lines)


def _title(run: dict[str, Any]) -> str:
    new = f", {run['new']:,} new steps" if "new" in run else f", {run['storage']}"
    return f"{run['transitions']:,}, {run['frames']}{new}"


def _table(kept: dict[str, Any], kind: str, rows: dict[str, str]) -> list[str]:
    runs = {name: run for name, run in kept.items() if name.split()[0] == kind}
    titles = [_title(run) for run in runs.values()]
    out = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(runs)]
    if kind == "big":
        held = [f"{run['status_filled_gb']['own']:.2f}" for run in runs.values()]
        out.append("| resident memory of its own, full, GB | " + " | ".join(held) + " |")
    for key, label in rows.items():
        out.append(f"| {label} | " + " | ".join(_figure(label, run[key]) for run in runs.values()) + " |")
    machines = {
        f"{_title(run)}: {in_words(run['machine'])}, load {run['machine']['load_average_before']:.0f}"
        for run in runs.values()
    }
    return [*out, "", "Measured on", "", *(f"- {machine}" for machine in sorted(machines)), ""]


def _figure(label: str, value: float) -> str:
    """Shares in percent, all else with three digits that count."""
    if label.startswith("share"):
        return f"{value:.1%}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    for path in sys.argv[1:]:
        take_in(json.loads(Path(path).read_text()))
