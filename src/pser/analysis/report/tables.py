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
from pser.analysis.report.metrics import MASS_SOURCES
from pser.analysis.report.numbers import Fixed
from pser.analysis.report.runs import Run
from pser.analysis.report.scoreboard import EnvBoard, RunScore
from pser.analysis.report.words import interval, p_text
from pser.records.nesting import flatten


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
    """A row for each game and label: final score, its spread, best snapshot, normalised."""
    columns = (
        Column("game"), *_label_columns(report), Column("final", True), Column("lowest to highest"),
        Column("seeds", True), Column("best snapshot", True), Column("re-evaluated", True),
        Column("human-normalised", True), Column("frames", True),
    )  # fmt: skip
    fixed = Fixed.of(x for board in report.board.boards for s in board.scores for x in (s.final, s.best))
    rows = [
        _score_row(report, board, label, fixed)
        for board in report.board.boards
        for label in report.runs.labels
        if label in board.labels()
    ]
    return _without_empty_columns(Table("score-table", columns, tuple(rows)))


def agent_table(report: Report) -> Table | None:
    """Mean final scores, a row an agent and a column a replay strategy, where there are several of both."""
    strategies = list(dict.fromkeys(part.strategy for part in report.runs.parts))
    if len(report.runs.agents) < 2 or len(strategies) < 2:
        return None
    names = {(part.agent, part.strategy): part.name for part in report.runs.parts}
    means = {
        (board.env, label): float(board.values(label, report.comparison.kind).mean())
        for board in report.board.boards
        for label in board.labels()
    }
    fixed = Fixed.of(means.values())
    rows = []
    for board in report.board.boards:
        for agent in report.runs.agents:
            values = [means.get((board.env, names.get((agent, strategy), ""))) for strategy in strategies]
            if any(value is not None for value in values):
                cells = (number_cell(value, fixed) for value in values)
                rows.append((text_cell(board.env), text_cell(agent), *cells))
    columns = (Column("game"), Column("agent"), *(Column(strategy, True) for strategy in strategies))
    return Table("agent-table", columns, tuple(rows))


def change_table(report: Report) -> tuple[str, Table] | None:
    """Percent change by game for the main pair, where it has several games, and its title."""
    pair = main_pair(report)
    if pair is None or len(pair.envs) < 2:
        return None
    changes = pair.changes()
    fixed = Fixed.of(value for both in pair.means.values() for value in both)
    rows = [
        (
            text_cell(env),
            number_cell(pair.means[env][0], fixed),
            number_cell(pair.means[env][1], fixed),
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
    columns = (*_label_columns(report), Column("runs", True), *(Column(name, True) for name in STATISTICS))
    rows = [
        (
            *_label_cells(report, summary.label),
            Cell(str(summary.runs), summary.runs),
            *(_value_cell(summary.statistics[name]) for name in STATISTICS),
        )
        for summary in report.comparison.labels
    ]
    return Table("aggregate-table", columns, tuple(rows))


def pair_table(report: Report) -> Table | None:
    """Every pair: the probability that a run of the first scores higher, and what the test says of it."""
    if not report.comparison.pairs:
        return None
    columns = (
        Column("first"), Column("second"), Column("what the test says"),
        Column("P(first scores higher)", True), Column("p", True), Column("p, corrected", True),
        Column("games", True), Column("seeds"),
    )  # fmt: skip
    rows = [
        (
            label_cell(report, pair.x),
            label_cell(report, pair.y),
            text_cell(verdict(pair)),
            _value_cell(pair.probability),
            Cell(p_text(pair.p_value).removeprefix("p = ").removeprefix("p "), pair.p_value),
            Cell(p_text(pair.corrected).removeprefix("p = ").removeprefix("p "), pair.corrected),
            Cell(str(len(pair.envs)), len(pair.envs)),
            text_cell(f"{_range(pair.seeds_x)} / {_range(pair.seeds_y)}"),
        )
        for pair in report.comparison.pairs
    ]
    return Table("pair-table", columns, tuple(rows))


def verdict(pair: Pair) -> str:
    """`no difference shown`, or who is ahead."""
    if not pair.shown:
        return "no difference shown"
    return "first is ahead" if pair.ahead else "second is ahead"


def mass_table(report: Report) -> Table | None:
    """Where the sampling mass comes from at the end of the runs: mean shares over the seeds, if recorded."""
    columns = (
        Column("game"),
        *_label_columns(report),
        *(Column(source.title, True) for source in MASS_SOURCES),
    )
    rows = []
    for env in report.runs.envs:
        for label in report.runs.labels:
            runs = report.runs.select(env=env, label=label)
            ends = [[run.metric_series(source.key) for source in MASS_SOURCES] for run in runs]
            known = [[series.values[-1] for series in run] for run in ends if all(map(len, run))]
            if known:
                shares = (number_cell(float(share), Fixed(3)) for share in np.mean(known, axis=0))
                rows.append((text_cell(env), *_label_cells(report, label), *shares))
    return Table("mass-table", columns, tuple(rows)) if rows else None


def run_table(report: Report) -> Table:
    """A row a run: what it was and how it stands."""
    columns = (
        Column("run"), Column("game"), *_label_columns(report), Column("seed", True), Column("state"),
        Column("frames", True), Column("frames/s", True), Column("final", True), Column("best", True),
    )  # fmt: skip
    scored = {score.run.name: score for board in report.board.boards for score in board.scores}
    fixed = Fixed.of(x for score in scored.values() for x in (score.final, score.best))
    rows = [_run_row(report, run, scored.get(run.name), fixed) for run in report.runs.runs]
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


def settings_text(flat: dict[str, Any]) -> str:
    """A line a setting."""
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in flat.items())


def repeat_command(run: Run) -> str:
    """The command that repeats a run from its manifest."""
    manifest = run.path / "manifest.json"
    again = Path("runs") / f"{run.path.name}-again"
    return f"pser train --from-run {quote(str(manifest))} --run-dir {quote(str(again))}"


def text_cell(text: str) -> Cell:
    """A cell sorted by its text."""
    return Cell(text, text)


def number_cell(value: float | None, fixed: Fixed) -> Cell:
    """A number with its column's decimals, a dash for none."""
    return Cell("–") if value is None or math.isnan(value) else Cell(fixed(value), value)


def label_cell(report: Report, label: str) -> Cell:
    """A label with its colour."""
    return Cell(label, label, report.runs.labels.index(label))


def _label_columns(report: Report) -> tuple[Column, ...]:
    """The replay strategy; the agent before it where there are several."""
    return (Column("agent"), Column("replay")) if len(report.runs.agents) > 1 else (Column("replay"),)


def _label_cells(report: Report, label: str) -> tuple[Cell, ...]:
    place = report.runs.labels.index(label)
    part = report.runs.parts[place]
    replay = Cell(part.strategy, part.strategy, place)
    return (text_cell(part.agent), replay) if len(report.runs.agents) > 1 else (replay,)


def _score_row(report: Report, board: EnvBoard, label: str, fixed: Fixed) -> tuple[Cell, ...]:
    scores = [score for score in board.scores if score.run.label == label]
    final = np.array([score.final for score in scores])
    again = [score for score in scores if score.reevaluated is not None]
    fresh = (
        float(np.mean([score.reevaluated for score in again if score.reevaluated is not None]))
        if again
        else None
    )
    episodes = sorted({score.reevaluated_episodes or 0 for score in again})
    shown = number_cell(fresh, fixed)
    if fresh is not None:
        partly = "" if len(again) == len(scores) else f", {len(again)} of {len(scores)} seeds"
        shown = Cell(f"{shown.text} ({'–'.join(map(str, episodes))} ep.{partly})", fresh)
    human = None if board.human is None else 100 * float(board.human.apply(final).mean())
    spread = f"{fixed(final.min())} to {fixed(final.max())}" if len(scores) > 1 else "single seed"
    return (
        text_cell(board.env),
        *_label_cells(report, label),
        number_cell(float(final.mean()), fixed),
        Cell(spread, float(final.min())),
        Cell(str(len(scores)), len(scores)),
        number_cell(float(np.mean([score.best for score in scores])), fixed),
        shown,
        Cell("–") if human is None else Cell(f"{human:.1f}%", human),
        Cell(f"{board.budget_frames:,}", board.budget_frames),
    )


def _run_row(report: Report, run: Run, score: RunScore | None, fixed: Fixed) -> tuple[Cell, ...]:
    speed = run.metric_series("frames_per_second")
    return (
        text_cell(run.name),
        text_cell(run.env),
        *_label_cells(report, run.label),
        Cell(str(run.seed), run.seed),
        text_cell(run.state),
        Cell(f"{run.frames:,}", run.frames),
        number_cell(float(np.median(speed.values)) if len(speed) else None, Fixed(0)),
        number_cell(score.final if score else None, fixed),
        number_cell(score.best if score else None, fixed),
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
