"""The report as one HTML file that needs nothing but itself."""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

import pser
from pser.analysis.colours import DARK_PALETTE, PALETTE, colour_of
from pser.analysis.published import DOPAMINE_DIFFERS, PublishedCurve
from pser.analysis.report.build import DIAGNOSTICS, METRICS, EnvCurves, Report
from pser.analysis.report.captions import aggregates_caption, curves_caption, scores_caption, subtitle
from pser.analysis.report.curves import Curve
from pser.analysis.report.runs import Run
from pser.analysis.report.tables import (
    aggregate_table,
    change_table,
    pair_table,
    repeat_command,
    run_table,
    score_table,
    settings_split,
)

FloatArray = NDArray[np.float64]


def render_html(report: Report) -> str:
    """The whole page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string(_packaged("report/page.html.j2")).render(_context(report))


def _context(report: Report) -> dict[str, Any]:
    aggregates, changes = aggregate_table(report), change_table(report)
    shared, own = settings_split(report.runs.runs)
    sections = [("summary", "Summary"), ("scores", "Scores"), ("curves", "Curves")]
    sections += [("aggregates", "Pooled")] if aggregates else []
    sections += [("diagnostics", "Priorities"), ("runs", "Runs")]
    library = _packaged("vendor/uplot/uPlot.iife.min.js")
    version = re.search(r"v(\d+\.\d+\.\d+)", library)
    return {
        "title": report.settings.title,
        "subtitle": subtitle(report),
        "sections": sections,
        "sentences": report.sentences,
        "notes": report.notes,
        "scores": score_table(report),
        "scores_caption": scores_caption(report),
        "changes": changes[1] if changes else None,
        "changes_title": changes[0] if changes else "",
        "curves_caption": curves_caption(report),
        "published": DOPAMINE_DIFFERS if any(env.published for env in report.curves) else (),
        "aggregates": aggregates,
        "aggregates_caption": aggregates_caption(report),
        "pairs": pair_table(report),
        "diagnostics": METRICS[:DIAGNOSTICS],
        "run_table": run_table(report),
        "runs": [_run(run, own[run.name]) for run in report.runs.runs],
        "shared_settings": _settings(shared),
        "version": pser.__version__,
        "library_version": version.group(1) if version else "",
        "library_css": Markup(_packaged("vendor/uplot/uPlot.min.css")),
        "library_js": Markup(library),
        "css": Markup(_packaged("report/page.css")),
        "js": Markup(_packaged("report/page.js")),
        "data": Markup(script_json(_payload(report))),
    }  # fmt: skip


def script_json(document: dict[str, Any]) -> str:
    """JSON that is safe inside a script element: no `<`, so nothing in it can end the element."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _payload(report: Report) -> dict[str, Any]:
    """What the page's script draws."""
    labels = report.runs.labels
    boards = {board.env: board for board in report.board.boards}
    human = any(board.human for board in boards.values())
    scales = [("return", "return"), ("minmax", "min–max per game (ablation)")]
    scales += [("human", "human-normalised")] if human else []
    envs = []
    for env in report.curves:
        board = boards.get(env.env)
        ends: dict[str, list[float]] = {}
        if board:
            ends["minmax"] = [board.min_max.low, board.min_max.high]
            if board.human:
                ends["human"] = [board.human.low, board.human.high]
        curves = [_curve(curve) for curve in env.returns] + [_published(p, env) for p in env.published]
        name = f"{env.env} (training returns)" if board and board.source == "training" else env.env
        envs.append({"name": name, "frames": _numbers(env.frames), "curves": curves, "ends": ends})
    profile = None
    if report.profile:
        shares = report.profile.shares.items()
        curves = [{"label": label, "mean": _numbers(share)} for label, share in shares]
        profile = {"x": _numbers(report.profile.thresholds), "curves": curves}
    return {
        "labels": [_label(label, labels) for label in labels],
        "scales": scales,
        "envs": envs,
        "profile": profile,
        "metrics": [{"key": m.key, "title": m.title, "help": m.help} for m in METRICS],
        "diagnostics_shown": DIAGNOSTICS,
        "diagnostics": [_diagnostics(env) for env in report.curves],
    }


def _label(label: str, labels: Sequence[str]) -> dict[str, str]:
    light = colour_of(label, labels)
    return {"name": label, "light": light, "dark": DARK_PALETTE[PALETTE.index(light)]}


def _diagnostics(env: EnvCurves) -> dict[str, Any]:
    curves = {key: [_curve(curve) for curve in found] for key, found in env.metrics.items() if found}
    return {"name": env.env, "frames": _numbers(env.metric_frames), "curves": curves}


def _curve(curve: Curve) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "label": curve.label,
        "mean": _numbers(curve.mean),
        "count": curve.count.tolist(),
    }
    if curve.seeds > 1:
        drawn |= {"low": _numbers(curve.low), "high": _numbers(curve.high)}
    return drawn


def _published(curve: PublishedCurve, env: EnvCurves) -> dict[str, Any]:
    """Dopamine's mean on the runs' own frames; nothing before its first iteration."""
    mean = np.interp(env.frames, curve.frames, curve.mean, left=np.nan, right=np.nan)
    return {
        "label": f"Dopamine {curve.agent}",
        "mean": _numbers(mean),
        "dashed": True,
        "dotted": curve.agent != "DQN",
    }


def _numbers(values: FloatArray) -> list[float | None]:
    """Six significant digits are more than a screen shows; NaN becomes null."""
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in values]


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
        "name": run.name,
        "summary": f"{run.env}, {run.label}, seed {run.seed}, {run.state}",
        "facts": facts,
        "command": str(run.manifest.get("command", "–")),
        "repeat": repeat_command(run),
        "settings": _settings(own),
    }


def _settings(flat: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in flat.items())


@cache
def _packaged(name: str) -> str:
    path = files("pser") / "data"
    for part in name.split("/"):
        path = path / part
    return path.read_text(encoding="utf-8")
