"""The report as Markdown, for a repository or a pull request."""

import os
from collections.abc import Sequence
from pathlib import Path

from pser.analysis.paper.text import table as markdown_table
from pser.analysis.published import DOPAMINE_DIFFERS
from pser.analysis.report.build import Report
from pser.analysis.report.captions import aggregates_caption, curves_caption, scores_caption, subtitle
from pser.analysis.report.tables import (
    Table,
    aggregate_table,
    change_table,
    pair_table,
    repeat_command,
    run_table,
    score_table,
)


def render_markdown(report: Report, figures: Sequence[Path], beside: Path) -> str:
    """The text; figures are linked relative to `beside`, the folder the text will be in."""
    parts = [
        f"# {report.settings.title}",
        subtitle(report) + ".",
        *(f"**{s.head}** {s.rest}" for s in report.sentences),
    ]
    if report.notes:
        parts += ["## To keep in mind", "\n".join(f"- {note}" for note in report.notes)]
    parts += ["## Scores", _table(score_table(report)), scores_caption(report)]
    changes = change_table(report)
    if changes:
        parts += [f"### {changes[0]}", _table(changes[1])]
    parts += ["## Learning curves", *_images(figures, beside), curves_caption(report)]
    if any(env.published for env in report.curves):
        parts.append(
            f"Dashed: Dopamine's published curves. What differs there: {'; '.join(DOPAMINE_DIFFERS)}."
        )
    aggregates, pairs = aggregate_table(report), pair_table(report)
    if aggregates:
        parts += ["## Pooled over games", _table(aggregates), aggregates_caption(report)]
    if pairs:
        parts += ["### Probability of improvement", _table(pairs)]
    parts += ["## Runs", _table(run_table(report)), "To repeat them:", _commands(report)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(table: Table) -> str:
    numeric = [index for index, column in enumerate(table.columns) if column.numeric]
    header = [column.name for column in table.columns]
    rows = [[cell.text for cell in row] for row in table.rows]
    return markdown_table(header, rows, numeric=numeric)


def _images(figures: Sequence[Path], beside: Path) -> list[str]:
    """PNG figures by name; the SVG of each is beside it."""
    shown = [path for path in figures if path.suffix == ".png"]
    return [
        f"![{path.stem.replace('_', ' ')}]({Path(os.path.relpath(path, beside)).as_posix()})"
        for path in shown
    ]


def _commands(report: Report) -> str:
    return "```sh\n" + "\n".join(repeat_command(run) for run in report.runs.runs) + "\n```"
