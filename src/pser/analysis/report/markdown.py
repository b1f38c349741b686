"""The report as Markdown, for a repository or a pull request."""

import os
from collections.abc import Sequence
from pathlib import Path

from pser.analysis import markdown
from pser.analysis.report import captions
from pser.analysis.report.build import Report
from pser.analysis.report.tables import (
    Table,
    agent_table,
    aggregate_table,
    change_table,
    mass_table,
    pair_table,
    repeat_command,
    run_table,
    score_table,
)


def render_markdown(report: Report, figures: Sequence[Path], beside: Path) -> str:
    """The text; figures are linked relative to `beside`, the folder the text will be in."""
    parts = [
        f"# {report.settings.title}",
        captions.subtitle(report) + ".",
        *(f"**{markdown.escape(s.head)}** {markdown.escape(s.rest)}" for s in report.sentences),
    ]
    if report.notes:
        listed = "\n".join(f"- {markdown.escape(str(note))}" for note in report.notes)
        parts += ["## To keep in mind", listed]
    parts += ["## Scores", _table(score_table(report)), captions.scores_caption(report)]
    agents, changes, pairs = agent_table(report), change_table(report), pair_table(report)
    if agents:
        parts += ["### By agent and replay", _table(agents)]
    if changes:
        parts += [f"### {markdown.escape(changes[0])}", _table(changes[1])]
    if pairs:
        parts += ["### Pairs", _table(pairs), captions.pairs_caption(report)]
    parts += ["## Figures", *_images(figures, beside), captions.curves_caption(report)]
    parts += captions.published_captions(report)
    aggregates = aggregate_table(report)
    if aggregates:
        parts += ["## Pooled over games", _table(aggregates), captions.aggregates_caption(report)]
    masses = mass_table(report)
    if masses:
        parts += ["## Where the sampling mass comes from", _table(masses), captions.mass_caption()]
    parts += ["## Runs", _table(run_table(report)), "To repeat them:", _commands(report)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(table: Table) -> str:
    numeric = [index for index, column in enumerate(table.columns) if column.numeric]
    header = [markdown.escape(column.name) for column in table.columns]
    rows = [[markdown.escape(cell.text) for cell in row] for row in table.rows]
    return markdown.table(header, rows, numeric=numeric)


def _images(figures: Sequence[Path], beside: Path) -> list[str]:
    """PNG figures by name; the SVG of each is beside it."""
    shown = [path for path in figures if path.suffix == ".png"]
    return [
        f"![{path.stem.replace('_', ' ')}]({Path(os.path.relpath(path, beside)).as_posix()})"
        for path in shown
    ]


def _commands(report: Report) -> str:
    return "```sh\n" + "\n".join(repeat_command(run) for run in report.runs.runs) + "\n```"
