"""What the page's script draws, as plain JSON values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pser.analysis.colours import DARK_PALETTE, PALETTE
from pser.analysis.published import PublishedFigures
from pser.analysis.report.build import Report
from pser.analysis.report.curves import Curve
from pser.analysis.report.games import GameCurves
from pser.analysis.report.labels import Label, Style
from pser.analysis.report.metrics import DIAGNOSTICS, METRICS
from pser.analysis.report.runs import Run
from pser.analysis.report.scoreboard import EnvBoard
from pser.analysis.report.tables import repeat_command, settings_text

FloatArray = NDArray[np.float64]


def payload(report: Report, own_settings: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Labels, curves, diagnostics and runs; curves name their label by its number."""
    boards = {board.env: board for board in report.board.boards}
    numbers = {label: place for place, label in enumerate(report.runs.labels)}
    human = any(board.human for board in boards.values())
    scales = [("return", "as it is"), ("minmax", "min–max per game (ablation)")]
    scales += [("human", "human-normalised")] if human else []
    return {
        "labels": [_label(part, report.styles[part.name]) for part in report.runs.parts],
        "scales": scales,
        "envs": [_game(env, boards.get(env.env), numbers) for env in report.curves],
        "profile": _profile(report, numbers),
        "metrics": [{"key": m.key, "title": m.title, "unit": m.unit, "help": m.help} for m in METRICS],
        "diagnostics_shown": DIAGNOSTICS,
        "runs": [_run(run, own_settings[run.name]) for run in report.runs.runs],
    }


def _label(part: Label, style: Style) -> dict[str, Any]:
    dark = DARK_PALETTE[PALETTE.index(style.colour)]
    look = {"light": style.colour, "dark": dark, "dash": style.dash}
    return {"name": part.name, "agent": part.agent, "strategy": part.strategy, **look}


def _game(env: GameCurves, board: EnvBoard | None, numbers: dict[str, int]) -> dict[str, Any]:
    """A game's returns of both kinds, with the ends of its scales, and its diagnostics."""
    ends: dict[str, list[float]] = {}
    if board:
        ends["minmax"] = [board.min_max.low, board.min_max.high]
        if board.human:
            ends["human"] = [board.human.low, board.human.high]
    returns: dict[str, Any] = {}
    if env.source == "evaluation":
        returns["evaluation"] = _curves(env.frames, env.returns, numbers)
    if env.training:
        returns["training"] = _curves(env.training_frames, env.training, numbers)
        returns["training"]["published"] = [_published(x, env.training_frames) for x in env.published]
    metrics = {
        key: [_curve(curve, numbers, lines=False) for curve in found]
        for key, found in env.metrics.items()
        if found
    }
    diagnostics = {"frames": _numbers(env.metric_frames), "curves": metrics}
    return {"name": env.env, "ends": ends, "returns": returns, "diagnostics": diagnostics}


def _curves(frames: FloatArray, curves: Sequence[Curve], numbers: dict[str, int]) -> dict[str, Any]:
    return {"frames": _numbers(frames), "curves": [_curve(curve, numbers, lines=True) for curve in curves]}


def _curve(curve: Curve, numbers: dict[str, int], *, lines: bool) -> dict[str, Any]:
    drawn: dict[str, Any] = {"label": numbers[curve.label], "mean": _numbers(curve.mean)}
    count = curve.count.tolist()
    drawn["count"] = count[0] if len(set(count)) == 1 else count
    if curve.seeds > 1:
        drawn |= {"low": _numbers(curve.low), "high": _numbers(curve.high)}
        if lines:
            drawn["lines"] = {name: _numbers(values) for name, values in curve.lines.items()}
    return drawn


def _published(figures: PublishedFigures, frames: FloatArray) -> dict[str, Any]:
    """Published figures on the runs' own frames, which hold theirs; nothing between them."""
    at = np.searchsorted(frames, figures.frames)
    columns = {}
    for name in ("mean", "low", "high"):
        column = np.full(len(frames), np.nan)
        column[at] = getattr(figures, name)
        columns[name] = _numbers(column)
    return {"name": f"{figures.name} (published)", "spread": figures.source.spread, **columns}


def _profile(report: Report, numbers: dict[str, int]) -> dict[str, Any] | None:
    if report.profile is None:
        return None
    shares = report.profile.shares.items()
    return {
        "x": _numbers(report.profile.thresholds),
        "unit": f"{report.comparison.scale} normalised score τ",
        "curves": [{"label": numbers[label], "mean": _numbers(share)} for label, share in shares],
    }


def _run(run: Run, own: dict[str, Any]) -> dict[str, Any]:
    machine = run.manifest.get("machine") or {}
    versions = run.manifest.get("versions") or {}
    facts = [
        ("folder", str(run.path)),
        ("preset", run.preset or "–"),
        ("started", str(run.manifest.get("started", "–"))),
        ("commit", str(run.manifest.get("commit") or "–")),
        ("machine", ", ".join(f"{key} {value}" for key, value in machine.items()) or "–"),
        ("versions", ", ".join(f"{key} {value}" for key, value in versions.items()) or "–"),
    ]
    return {
        "facts": facts,
        "command": str(run.manifest.get("command", "–")),
        "repeat": repeat_command(run),
        "settings": settings_text(own),
    }


def _numbers(values: FloatArray) -> list[float | None]:
    """Five significant digits (frames: all) are more than a screen shows; NaN becomes null."""
    whole = len(values) > 0 and bool(np.all(values == np.floor(values)))
    if whole:
        return [int(value) for value in values]
    return [None if np.isnan(value) else float(f"{value:.5g}") for value in values]
