"""The report as one HTML file that needs nothing but itself."""

import json
import re
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

import pser
from pser.analysis.packaged import packaged
from pser.analysis.report import captions
from pser.analysis.report.build import Report
from pser.analysis.report.metrics import DIAGNOSTICS, METRICS
from pser.analysis.report.payload import payload
from pser.analysis.report.pictures import interval_panels
from pser.analysis.report.tables import (
    agent_table,
    aggregate_table,
    change_table,
    mass_table,
    pair_table,
    run_table,
    score_table,
    settings_split,
    settings_text,
)


def render_html(report: Report) -> str:
    """The whole page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    environment.filters["breakable"] = breakable
    return environment.from_string(packaged("report/page.html.j2")).render(_context(report))


def _context(report: Report) -> dict[str, Any]:
    aggregates, changes = aggregate_table(report), change_table(report)
    shared, own = settings_split(report.runs.runs)
    sections = [("summary", "Summary"), ("scores", "Scores"), ("curves", "Curves")]
    sections += [("aggregates", "Pooled")] if aggregates else []
    sections += [("diagnostics", "Priorities"), ("runs", "Runs")]
    library = packaged("vendor/uplot/uPlot.iife.min.js")
    version = re.search(r"v(\d+\.\d+\.\d+)", library)
    return {
        "title": report.settings.title,
        "subtitle": captions.subtitle(report),
        "one_game": len(report.runs.envs) == 1,
        "sections": sections,
        "sentences": report.sentences,
        "notes": report.notes,
        "scores": score_table(report),
        "scores_caption": captions.scores_caption(report),
        "agents": agent_table(report),
        "changes": changes[1] if changes else None,
        "changes_title": changes[0] if changes else "",
        "pairs": pair_table(report),
        "pairs_caption": captions.pairs_caption(report),
        "curves_caption": captions.curves_caption(report),
        "published": captions.published_captions(report),
        "aggregates": aggregates,
        "interval_panels": interval_panels(report),
        "aggregates_caption": captions.aggregates_caption(report),
        "diagnostics": METRICS[:DIAGNOSTICS],
        "masses": mass_table(report),
        "mass_caption": captions.mass_caption(),
        "run_table": run_table(report),
        "runs": [(run.name, f"{run.env}, {run.label}, seed {run.seed}, {run.state}") for run in report.runs.runs],
        "shared_settings": settings_text(shared),
        "version": pser.__version__,
        "library_version": version.group(1) if version else "",
        "library_css": Markup(packaged("vendor/uplot/uPlot.min.css")),
        "library_js": Markup(library),
        "css": Markup(packaged("report/page.css")),
        "js": Markup(packaged("report/page.js")),
        "data": Markup(script_json(payload(report, own))),
    }  # fmt: skip


def breakable(text: str) -> Markup:
    """Text that a narrow column may break after an underscore."""
    return Markup(escape(text).replace("_", Markup("_<wbr>")))


def script_json(document: dict[str, Any]) -> str:
    """JSON that is safe inside a script element: no `<`, so nothing in it can end the element."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
