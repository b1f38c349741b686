"""The report's figures for papers: PNG and SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pser.analysis.colours import NOTE, RULE
from pser.analysis.report.build import Report
from pser.analysis.report.comparison import STATISTICS
from pser.analysis.report.curves import Curve
from pser.analysis.report.games import GameCurves
from pser.analysis.report.labels import Style
from pser.analysis.report.metrics import DIAGNOSTICS, METRICS
from pser.analysis.report.scoreboard import Scale
from pser.analysis.report.tables import main_pair
from pser.analysis.style import count_frames, new_figure, new_grid, save

MARKERS = "osD^v"


def draw_report_figures(report: Report, folder: Path) -> list[Path]:
    """Every figure the records allow; those over games only where there are several. The paths written."""
    written = [*_learning_curves(report, folder), *_training_returns(report, folder)]
    if len(report.board.boards) > 1:
        written += [*_ablation(report, folder), *_percent_change(report, folder)]
    if report.comparison.labels:
        written += [*_aggregates(report, folder), *_profile(report, folder)]
    return [*written, *_diagnostics(report, folder)]


def _learning_curves(report: Report, folder: Path) -> list[Path]:
    """Return over frames, one panel a game, the band from the lowest to the highest seed."""
    envs = [env for env in report.curves if env.returns]
    kinds = {env.source for env in envs}
    ylabel = "evaluation return" if kinds == {"evaluation"} else "return"
    return _panels(report, {env: env.returns for env in envs}, folder, "learning_curves", ylabel)


def _training_returns(report: Report, folder: Path) -> list[Path]:
    """Training returns beside what others published of the same game, which are training returns too."""
    envs = [env for env in report.curves if env.published and env.training]
    curves = {env: env.training for env in envs}
    return _panels(report, curves, folder, "training_returns", "training return", published=True)


def _ablation(report: Report, folder: Path) -> list[Path]:
    """The paper's ablation figure (Fig. 6): each game scaled by the lowest and highest value of any run."""
    scales = {board.env: board.min_max for board in report.board.boards}
    envs = [env for env in report.curves if env.returns and env.env in scales]
    curves = {env: env.returns for env in envs}
    return _panels(report, curves, folder, "ablation", "min–max-normalised return", scales)


def _panels(
    report: Report,
    curves: Mapping[GameCurves, Sequence[Curve]],
    folder: Path,
    name: str,
    ylabel: str,
    scales: Mapping[str, Scale] | None = None,
    *,
    published: bool = False,
) -> list[Path]:
    """Small multiples: a panel a game, smaller ones where there are many."""
    if not curves:
        return []
    columns, width, height = (3, 4.2, 3.0) if len(curves) <= 9 else (6, 2.5, 1.9)
    if len(curves) == 1:
        width, height = 6.4, 3.4
    figure, axes = new_grid(len(curves), columns, width, height)
    for place, (axis, (env, lines)) in enumerate(zip(axes, curves.items(), strict=True)):
        for curve in lines:
            _line(axis, curve, report.styles[curve.label], (scales or {}).get(env.env))
        if published:
            _published(axis, env)
        axis.set_title(env.env, fontsize=9 if columns == 3 else 7, loc="left")
        count_frames(axis)
        axis.tick_params(labelsize=8 if columns == 3 else 6)
        if place % columns == 0:
            axis.set_ylabel(ylabel, fontsize=9 if columns == 3 else 7)
        if place >= len(curves) - columns:
            axis.set_xlabel("frames", fontsize=9 if columns == 3 else 7)
    _legend(figure, axes)
    return save(figure, folder, name)


def _line(axis: Axes, curve: Curve, style: Style, scale: Scale | None = None) -> None:
    mean, low, high = (
        scale.apply(values) if scale else values for values in (curve.mean, curve.low, curve.high)
    )
    axis.plot(curve.frames, mean, linewidth=1.4, label=curve.label, **_look(style))
    if curve.seeds > 1:
        axis.fill_between(curve.frames, low, high, color=style.colour, alpha=0.18, linewidth=0)


def _look(style: Style) -> dict[str, Any]:
    return {"color": style.colour, "linestyle": (0, style.dash) if style.dash else "-"}


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend under all panels: a label may be missing from any one of them."""
    handles: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    width, height = figure.get_size_inches()
    columns = max(1, int(width / (0.6 + 0.075 * max(map(len, handles)))))
    figure.set_figheight(height + 0.17 * -(-len(handles) // columns))  # the panels keep their room
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        frameon=False,
    )


def _published(axis: Axes, env: GameCurves) -> None:
    """Published figures as what they are: points with the range or error that came with them."""
    for place, figures in enumerate(env.published):
        axis.errorbar(
            figures.frames, figures.mean, yerr=(figures.mean - figures.low, figures.high - figures.mean),
            fmt=MARKERS[place % len(MARKERS)], color=NOTE, markersize=4, linewidth=1, capsize=2,
            markerfacecolor="none", label=f"{figures.name} (published)", zorder=3,
        )  # fmt: skip


def _diagnostics(report: Report, folder: Path) -> list[Path]:
    """Effective sample size, decayed share and collapse over frames, a row a game."""
    metrics = METRICS[:DIAGNOSTICS]
    envs = [env for env in report.curves if any(env.metrics[metric.key] for metric in metrics)]
    if not envs:
        return []
    figure, axes = new_grid(len(envs) * DIAGNOSTICS, DIAGNOSTICS, 4.0, 2.6)
    for row, env in enumerate(envs):
        for column, metric in enumerate(metrics):
            axis = axes[row * DIAGNOSTICS + column]
            for curve in env.metrics[metric.key]:
                _line(axis, curve, report.styles[curve.label])
            axis.set_title(f"{env.env}: {metric.title}", fontsize=8, loc="left")
            axis.set_ylabel(metric.unit, fontsize=8)
            if row == len(envs) - 1:
                axis.set_xlabel("frames", fontsize=8)
            if metric.key == "memory.decayed_share":
                axis.set_ylim(bottom=0)  # often small, and still of weight
            else:
                axis.set_ylim(-0.03, 1.03)
            count_frames(axis)
    _legend(figure, axes)
    return save(figure, folder, "diagnostics")


def _aggregates(report: Report, folder: Path) -> list[Path]:
    """IQM and the other aggregates with their intervals (Agarwal et al. 2021, Fig. 9)."""
    labels = report.comparison.labels
    figure, axes = new_grid(len(STATISTICS), len(STATISTICS), 2.5, 0.34 * len(labels) + 1.0)
    for place, (axis, name) in enumerate(zip(axes, STATISTICS, strict=True)):
        for row, summary in enumerate(labels):
            value, colour = summary.statistics[name], report.styles[summary.label].colour
            if value.interval:
                axis.plot(
                    [value.interval.low, value.interval.high], [row, row], color=colour, linewidth=7,
                    alpha=0.35, solid_capstyle="butt",
                )  # fmt: skip
            axis.plot([value.value], [row], "|", color=colour, markersize=11, markeredgewidth=2.5)
        axis.set_yticks(range(len(labels)), [x.label if place == 0 else "" for x in labels], fontsize=7)
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.grid(visible=True, axis="x")
        axis.set_title("optimality gap (less is better)" if name == "optimality gap" else name, fontsize=8)
        axis.tick_params(axis="x", labelsize=7)
    figure.supxlabel(
        f"{report.comparison.scale} normalised score over {len(report.comparison.envs)} games; "
        "bar: 95% bootstrap interval over seeds, none where a game has a single seed",
        fontsize=7,
        color=NOTE,
    )
    return save(figure, folder, "aggregates")


def _profile(report: Report, folder: Path) -> list[Path]:
    """Performance profiles (Agarwal et al. 2021, Fig. 4)."""
    assert report.profile is not None
    figure, axis = new_figure(4.6, 3.2)
    for label, share in report.profile.shares.items():
        axis.step(report.profile.thresholds, share, where="post", label=label, **_look(report.styles[label]))
    axis.set_xlabel(f"{report.comparison.scale} normalised score τ")
    axis.set_ylabel("share of runs with score > τ")
    axis.legend(fontsize=7, frameon=False)
    return save(figure, folder, "performance_profile")


def _percent_change(report: Report, folder: Path) -> list[Path]:
    """Percent change of the main pair, a bar a game."""
    pair = main_pair(report)
    if pair is None or len(pair.envs) < 2:
        return []
    changes = sorted((v, env) for env, v in pair.changes().items() if np.isfinite(v))
    if not changes:
        return []
    figure, axis = new_figure(max(4.0, 0.35 * len(changes) + 2.5), 3.4)
    colours = [report.styles[pair.x if value > 0 else pair.y].colour for value, _ in changes]
    axis.bar([env for _, env in changes], [value for value, _ in changes], color=colours, width=0.7)
    axis.axhline(0, color=RULE, linewidth=0.8)
    axis.tick_params(axis="x", rotation=90 if len(changes) > 4 else 0, labelsize=7)
    axis.set_ylabel("change of the mean score, %")
    axis.set_title(f"{pair.x} over {pair.y}", fontsize=9, loc="left")
    return save(figure, folder, "percent_change")
