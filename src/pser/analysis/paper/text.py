"""The check of the paper's table as Markdown and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pser.analysis import markdown
from pser.analysis.paper.claims import Claim
from pser.analysis.paper.recompute import PaperAnalysis
from pser.analysis.published import DOPAMINE
from pser.analysis.statistics.bootstrap import Estimate


def paper_json(numbers: PaperAnalysis, claims: Sequence[Claim]) -> str:
    """Everything computed, as one JSON document (percentages in percent, null where undefined)."""
    document: dict[str, Any] = {"format": 1, "claims": [asdict(claim) for claim in claims], **asdict(numbers)}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def paper_markdown(numbers: PaperAnalysis, claims: Sequence[Claim]) -> str:
    """The verdicts, the aggregates and the per-game table for reading."""
    sections = (
        _opening(claims),
        _verdicts(claims),
        _aggregates(numbers),
        _readings(numbers),
        _influence(numbers),
        _games(numbers),
    )
    return "\n\n".join(section.strip() for section in sections) + "\n"


def unsupported(claims: Sequence[Claim]) -> list[Claim]:
    """The statements the table does not bear out, in whole or in part."""
    return [claim for claim in claims if claim.verdict in ("does not hold", "holds only in part")]


def interval(estimate: Estimate, *, sign: bool = False) -> str:
    """`108.5% [67.6, 192.7]`."""
    form = "+.1f" if sign else ".1f"
    return f"{estimate.value:{form}}% [{estimate.low:{form}}, {estimate.high:{form}}]"


def _opening(claims: Sequence[Claim]) -> str:
    counts = {
        verdict: sum(c.verdict == verdict for c in claims)
        for verdict in dict.fromkeys(c.verdict for c in claims)
    }
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    items = "\n".join(f"- **{c.says}** ({c.where}): {c.recomputed}. {c.why}." for c in unsupported(claims))
    return (
        "# The paper's Atari table, recomputed\n\n"
        "Source: full-results table of Brittain et al. 2019 (arXiv 1905.12726), 60 games, one run of each "
        "algorithm a "
        f"game. {len(claims)} statements checked: {said}.\n\n"
        f"![relative performance](relative_performance.png)\n\n![percent change](percent_change.png)\n\n"
        f"## What the table does not support\n\n{items}\n"
    )


def _verdicts(claims: Sequence[Claim]) -> str:
    rows = [(c.says, c.where, c.stated, c.recomputed, f"**{c.verdict}**", c.why) for c in claims]
    return "## Every statement\n\n" + markdown.table(
        ("the paper says", "where", "stated", "recomputed", "verdict", "why"), rows
    )


def _aggregates(numbers: PaperAnalysis) -> str:
    rows = [
        (name, interval(a.pser), interval(a.per), interval(a.difference, sign=True))
        for name, a in numbers.aggregates.items()
    ]
    return (
        "## Human-normalised score over 55 games\n\n"
        + markdown.table(("statistic", "PSER", "PER", "PSER − PER"), rows, numeric=range(1, 4))
        + f"\n\nIn brackets: 95% percentile interval of {numbers.resamples:,} bootstrap resamples of the "
        "games (seed "
        f"{numbers.seed}; the same games for both, so the difference is paired). It says how far the number "
        "depends on "
        "which games are in the suite; run-to-run luck is not in it, for there is one run a game. "
        "Optimality gap: "
        "shortfall from human play (100%), less is better.\n\n"
        f"Sign test: {numbers.all_games.wins} wins, {numbers.all_games.losses} losses over 60 games, p = "
        f"{numbers.sign_test_all:.4f}; {numbers.human_games.wins} and {numbers.human_games.losses} over 55, "
        "p = "
        f"{numbers.sign_test_human:.4f} (two-sided, ties left out).\n"
    )


def _readings(numbers: PaperAnalysis) -> str:
    rows = [
        (r.name, f"`{r.formula}`", f"{len(r.pser_games)} / {len(r.per_games)}",
         ", ".join(r.pser_games) or "–", ", ".join(r.per_games) or "–")
        for r in numbers.readings
    ]  # fmt: skip
    return "## “Relative difference of over 100%”: stated 8 / 3\n\n" + markdown.table(
        ("reading", "formula", "PSER / PER", "PSER's games", "PER's games"), rows
    )


def _influence(numbers: PaperAnalysis) -> str:
    rows = [
        (i.game, f"{i.difference:+.1f}", f"{100 * i.share_of_gain:+.1f}%",
         f"{i.pser_mean_without:.1f}%", f"{i.per_mean_without:.1f}%")
        for i in numbers.influence[:10]
    ]  # fmt: skip
    header = (
        "game",
        "PSER − PER, points",
        "share of the gain",
        "PSER mean without it",
        "PER mean without it",
    )
    differs = "; ".join(DOPAMINE.differs)
    return (
        "## How much single games carry the mean\n\n"
        + markdown.table(header, rows, numeric=range(1, len(header)))
        + "\n\nThe ten largest. All 55 shares sum to 100%.\n\n"
        "Games whose difference is smaller than the range of Dopamine's five DQN runs "
        f"({len(numbers.within_run_spread)} of "
        f"60): {', '.join(numbers.within_run_spread)}. Those runs differ from the paper's in this: "
        f"{differs}.\n"
    )  # fmt: skip


def _games(numbers: PaperAnalysis) -> str:
    rows = [
        (
            row.game,
            f"{row.per:,.1f}",
            f"{row.pser:,.1f}",
            _percent(row.per_normalised),
            _percent(row.pser_normalised),
            _percent(row.difference, sign=True),
            _percent(row.percent_change, sign=True),
            _percent(row.signed_percent_change, sign=True),
        )
        for row in numbers.games
    ]
    header = (
        "game",
        "PER",
        "PSER",
        "PER norm.",
        "PSER norm.",
        "difference",
        "change (paper)",
        "change over |PER|",
    )
    return "## Every game\n\n" + markdown.table(header, rows, numeric=range(1, len(header)))


def _percent(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:+,.1f}%" if sign else f"{value:,.1f}%"
