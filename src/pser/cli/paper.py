"""Recompute every aggregate of the paper's Atari table and say which of its sentences the table supports.

Writes paper.json, paper.md and the two bar charts (PNG and SVG) into the output folder.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pser.errors import PserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pser.analysis.paper.claims import Claim
    from pser.analysis.paper.recompute import PaperAnalysis

_COLOURS = {
    "holds": "green",
    "holds only in part": "yellow",
    "does not hold": "red",
    "cannot be tested": "dim",
}


NARROW = 100
"""Terminals with fewer columns get a number and its interval on two lines."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to write, and how many resamples stand behind the intervals."""

    out: Path
    """Folder for paper.json, paper.md and the figures; made if it is not there."""
    resamples: int = 20_000
    """Bootstrap resamples of the games."""
    seed: int = 0
    """Seed of the bootstrap."""

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise PserError(f"resamples is at least 1; got {self.resamples}: use 2000 or more")
        if self.seed < 0:
            raise PserError(f"seed is not negative; got {self.seed}: use 0 or more")


def run(settings: Settings) -> None:
    """Compute, write, print."""
    try:
        from pser.analysis.paper.figures import draw_paper_figures
    except ModuleNotFoundError as error:
        raise PserError(f"figures need {error.name}: pip install 'pser[plot]'") from error
    from pser.analysis.paper.claims import check_claims
    from pser.analysis.paper.recompute import analyse
    from pser.analysis.paper.text import paper_json, paper_markdown

    numbers = analyse(seed=settings.seed, resamples=settings.resamples)
    claims = check_claims(numbers)
    settings.out.mkdir(parents=True, exist_ok=True)
    (settings.out / "paper.json").write_text(paper_json(numbers, claims), encoding="utf-8")
    (settings.out / "paper.md").write_text(paper_markdown(numbers, claims), encoding="utf-8")
    draw_paper_figures(numbers, settings.out)
    _show(numbers, claims)
    print(f"\nwritten: {settings.out / 'paper.md'} (with paper.json and two figures as PNG and SVG)")


def _show(numbers: "PaperAnalysis", claims: "Sequence[Claim]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pser.analysis.paper.text import interval, unsupported

    console = Console()
    verdicts = Table(title="The paper's Atari table: claim, recomputed value, verdict", title_justify="left")
    verdicts.add_column("the paper says", ratio=4, overflow="fold")
    verdicts.add_column("stated", ratio=2, overflow="fold")
    verdicts.add_column("recomputed", ratio=4, overflow="fold")
    verdicts.add_column("verdict", ratio=2, overflow="fold")
    narrow = console.width < NARROW
    for claim in claims:
        found = claim.recomputed.replace(" / ", "/") if narrow else claim.recomputed  # no break inside
        verdicts.add_row(
            claim.says, claim.stated, escape(found), f"[{_COLOURS[claim.verdict]}]{claim.verdict}[/]"
        )
    console.print(verdicts)
    aggregates = Table(title="Human-normalised, 55 games [95% interval over games]", title_justify="left")
    for column in ("", "PSER", "PER", "PSER − PER"):
        aggregates.add_column(column, justify="left" if not column else "right", overflow="fold")
    for name, a in numbers.aggregates.items():
        cells = (interval(a.pser), interval(a.per), interval(a.difference, sign=True))
        # Where a line has no room for value and interval, the interval goes below: no number is ever cut.
        aggregates.add_row(name, *(escape(cell.replace(" [", "\n[") if narrow else cell) for cell in cells))
    console.print(aggregates)
    console.print("[bold]Sentences the table does not support[/]")
    for claim in unsupported(claims):
        console.print(f"• {claim.says} ({claim.where}): {claim.why}", markup=False, highlight=False)
