"""What the priorities are made of, as lines for a terminal: a bar a source of mass."""

from collections.abc import Mapping

from pser.analysis.anatomy.page import Row

SOURCES = {
    "insertion": "insertion",
    "η's retention": "retention",
    "own TD error": "td_error",
    "decay": "decay",
}
"""Source of mass → as `memory.stats()` names it."""
BAR = 40
"""Characters of a bar that holds all of the mass."""


def shares_of_row(row: Row) -> dict[str, float]:
    """Source → its share of the mass, in the simulation."""
    _, _, found = row
    return dict(zip(SOURCES, (found.insertion, found.retention, found.own, found.decay), strict=True))


def recorded_shares(memory: Mapping[str, float]) -> dict[str, float]:
    """The same from a run's own statistics; empty if they do not tell."""
    columns = {source: f"mass_from_{name}" for source, name in SOURCES.items()}
    return {source: memory[column] for source, column in columns.items() if column in memory}


def bars(title: str, shares: Mapping[str, float]) -> list[str]:
    """A line a source."""
    return [
        f"{title}:",
        *(f"  {name:<14}{share:6.1%}  {'█' * round(BAR * share)}".rstrip() for name, share in shares.items()),
    ]


def evenness_text(ratio: float) -> str:
    """Whether replays are dealt out more evenly than draws by chance would do, whose counts have the ratio 1."""
    if ratio < 0.5:
        return "far more even than chance: a rota"
    return (
        "more even than chance"
        if ratio < 0.9
        else "as by chance"
        if ratio <= 1.1
        else "less even than chance"
    )


def lines_of(row: Row) -> list[str]:
    """One case: its mass by source, and how its replays are spread."""
    _, predicted, found = row
    told = "" if predicted is None else f" ({predicted:.1%} predicted)"
    return [
        *bars("sampling mass by source, simulated", shares_of_row(row)),
        f"insertion and its retention hold {found.from_insertion:.1%}{told}",
        f"effective samples: {found.effective_samples:.0%} of the memory",
        f"replay counts, variance / mean: {found.evenness:.2f} ({evenness_text(found.evenness)})",
        f"steps before a reward are replayed {found.near_rewards:.2f} times as often as others",
    ]
