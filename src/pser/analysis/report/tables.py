"""The report's tables as plain cells, the same for HTML and Markdown."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from pser.analysis.report.build import Report
from pser.analysis.report.comparison import STATISTICS, Pair, Value
from pser.analysis.report.runs import Run, flatten
from pser.analysis.report.scoreboard import EnvBoard, RunScore
from pser.analysis.report.words import LIKELY, interval, p_text


@dataclass(frozen=True)
class Column:
    """A heading."""

    name: str
    numeric: bool = False


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by ("" stays last)."""

    text: str
    sort: str | float = ""
    colour: int | None = None
    """Number of the label whose colour marks it."""


@dataclass(frozen=True)
class Table:
    """Rows under headings."""

    id: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def score_table(report: Report) -> Table:
    """A row for each game and label: final score, best snapshot, normalised."""
    columns = (
        Column("game"), Column("replay"), Column("seeds", True), Column("final", True),
        Column("lowest to highest"), Column("best snapshot", True), Column("re-evaluated", True),
        Column("human-normalised", True), Column("frames", True),
    )  # fmt: skip
    rows = [
        _score_row(report, board, label)
        for board in report.board.boards
        for label in report.runs.labels
        if label in board.labels()
    ]
    return _without_empty_columns(Table("score-table", columns, tuple(rows)))


def change_table(report: Report) -> tuple[str, Table] | None:
    """Percent change by game for the main pair (PSER over PER where both were run), and its title."""
    pair = main_pair(report)
    if pair is None:
        return None
    changes = pair.changes()
    rows = [
        (
            text_cell(env),
            number_cell(pair.means[env][0]),
            number_cell(pair.means[env][1]),
            Cell("–") if math.isnan(change) else Cell(f"{change:+.1f}%", change),
        )
        for env, change in changes.items()
    ]
    columns = (Column("game"), Column(pair.x, True), Column(pair.y, True), Column("change", True))
    return f"{pair.x} over {pair.y}", Table("change-table", columns, tuple(rows))


def main_pair(report: Report) -> Pair | None:
    """The pair a reader asks for first: PSER over PER, or else the first two main labels."""
    main = set(report.runs.main_labels)
    return next((pair for pair in report.comparison.pairs if {pair.x, pair.y} <= main), None)


def aggregate_table(report: Report) -> Table | None:
    """IQM, mean, median and optimality gap of the normalised scores."""
    if not report.comparison.labels:
        return None
    columns = (Column("replay"), Column("runs", True), *(Column(name, True) for name in STATISTICS))
    rows = [
        (
            label_cell(report, summary.label),
            Cell(str(summary.runs), summary.runs),
            *(_value_cell(summary.statistics[name]) for name in STATISTICS),
        )
        for summary in report.comparison.labels
    ]
    return Table("aggregate-table", columns, tuple(rows))


def pair_table(report: Report) -> Table | None:
    """Probability of improvement of every pair, told from the side that is ahead."""
    if not report.comparison.pairs:
        return None
    columns = (
        Column("ahead"), Column("behind"), Column("games", True), Column("seeds"),
        Column("probability", True), Column("luck alone", True),
    )  # fmt: skip
    rows = []
    for found in report.comparison.pairs:
        pair = found.turned() if found.probability.value < 0.5 else found
        seeds = f"{_range(pair.seeds_x)} / {_range(pair.seeds_y)}"
        untested = pair.single_seed and pair.smallest_p_value > LIKELY
        luck = Cell("single seed") if untested else Cell(p_text(pair.p_value), pair.p_value)
        rows.append(
            (
                label_cell(report, pair.x),
                label_cell(report, pair.y),
                Cell(str(len(pair.envs)), len(pair.envs)),
                text_cell(seeds),
                _value_cell(pair.probability),
                luck,
            )
        )
    return Table("pair-table", columns, tuple(rows))


def run_table(report: Report) -> Table:
    """A row a run: what it was and how it stands."""
    columns = (
        Column("run"), Column("game"), Column("replay"), Column("seed", True), Column("state"),
        Column("frames", True), Column("frames/s", True), Column("final", True), Column("best", True),
    )  # fmt: skip
    scored = {score.run.name: score for board in report.board.boards for score in board.scores}
    rows = [_run_row(report, run, scored.get(run.name)) for run in report.runs.runs]
    return Table("run-table", columns, tuple(rows))


def settings_split(runs: Sequence[Run]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Settings all runs share, and each run's others; so that a page of many runs stays short."""
    flats = {run.name: flatten(run.manifest.get("settings") or {}) for run in runs}
    keys = sorted({key for flat in flats.values() for key in flat})
    values = {key: {json.dumps(flat.get(key), sort_keys=True) for flat in flats.values()} for key in keys}
    shared = {key: next(iter(flats.values())).get(key) for key in keys if len(values[key]) == 1}
    own = {
        name: {key: flat[key] for key in keys if key not in shared and key in flat}
        for name, flat in flats.items()
    }
    return shared, own


def repeat_command(run: Run) -> str:
    """The command that repeats a run from its manifest."""
    manifest = run.path / "manifest.json"
    again = Path("runs") / f"{run.path.name}-again"
    return f"pser train --from-run {quote(str(manifest))} --run-dir {quote(str(again))}"


def text_cell(text: str) -> Cell:
    """A cell sorted by its text."""
    return Cell(text, text)


def number_cell(value: float | None) -> Cell:
    """A number with few digits, a dash for none."""
    return Cell("–") if value is None or math.isnan(value) else Cell(format_number(value), value)


def label_cell(report: Report, label: str) -> Cell:
    """A label with its colour."""
    return Cell(label, label, report.runs.labels.index(label))


def format_number(value: float) -> str:
    """Four significant digits, thousands separated."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _score_row(report: Report, board: EnvBoard, label: str) -> tuple[Cell, ...]:
    scores = [score for score in board.scores if score.run.label == label]
    final = np.array([score.final for score in scores])
    again = [score for score in scores if score.reevaluated is not None]
    fresh = (
        float(np.mean([score.reevaluated for score in again if score.reevaluated is not None]))
        if again
        else None
    )
    episodes = sorted({score.reevaluated_episodes or 0 for score in again})
    shown = number_cell(fresh)
    if fresh is not None:
        partly = "" if len(again) == len(scores) else f", {len(again)} of {len(scores)} seeds"
        shown = Cell(f"{shown.text} ({'–'.join(map(str, episodes))} ep.{partly})", fresh)
    human = None if board.human is None else 100 * float(board.human.apply(final).mean())
    spread = (
        f"{format_number(final.min())} to {format_number(final.max())}" if len(scores) > 1 else "single seed"
    )
    return (
        text_cell(board.env),
        label_cell(report, label),
        Cell(str(len(scores)), len(scores)),
        number_cell(float(final.mean())),
        Cell(spread, float(final.min())),
        number_cell(float(np.mean([score.best for score in scores]))),
        shown,
        Cell("–") if human is None else Cell(f"{human:.1f}%", human),
        Cell(f"{board.budget_frames:,}", board.budget_frames),
    )


def _run_row(report: Report, run: Run, score: RunScore | None) -> tuple[Cell, ...]:
    speed = run.metric_series("frames_per_second")
    return (
        text_cell(run.name),
        text_cell(run.env),
        label_cell(report, run.label),
        Cell(str(run.seed), run.seed),
        text_cell(run.state),
        Cell(f"{run.frames:,}", run.frames),
        number_cell(float(np.median(speed.values)) if len(speed) else None),
        number_cell(score.final if score else None),
        number_cell(score.best if score else None),
    )


def _without_empty_columns(table: Table) -> Table:
    """A column of dashes alone says nothing."""
    kept = [i for i in range(len(table.columns)) if any(row[i].text != "–" for row in table.rows)]
    return Table(
        table.id,
        tuple(table.columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in table.rows),
    )


def _value_cell(value: Value) -> Cell:
    return Cell(f"{value.value:.2f}{interval(value)}", value.value)


def _range(seeds: tuple[int, int]) -> str:
    return str(seeds[0]) if seeds[0] == seeds[1] else f"{seeds[0]}–{seeds[1]}"
