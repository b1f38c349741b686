"""The report's figures for papers: PNG and SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from pser.analysis.colours import colour_of
from pser.analysis.report.build import DIAGNOSTICS, METRICS, EnvCurves, Report
from pser.analysis.report.curves import Curve
from pser.analysis.report.scoreboard import Scale
from pser.analysis.style import new_figure, new_grid, save


def draw_report_figures(report: Report, folder: Path) -> list[Path]:
    """Every figure the records allow; the paths written."""
    written = [*_learning_curves(report, folder), *_ablation(report, folder), *_diagnostics(report, folder)]
    if report.profile is not None and len(report.profile.shares) > 1:
        written += _profile(report, folder)
    if len(report.comparison.pairs) > 0:
        written += _percent_change(report, folder)
    return written


def _learning_curves(report: Report, folder: Path) -> list[Path]:
    """Return over frames, one panel a game, the band from the lowest to the highest seed."""
    envs = [env for env in report.curves if env.returns]
    return _panels(report, envs, folder, "learning_curves", "return", {})


def _ablation(report: Report, folder: Path) -> list[Path]:
    """The paper's ablation figure (Fig. 6): each game scaled by the lowest and highest value of any run."""
    scales = {board.env: board.min_max for board in report.board.boards}
    envs = [env for env in report.curves if env.returns and env.env in scales]
    return _panels(
        report,
        envs,
        folder,
        "ablation",
        "min–max-normalised score",
        scales,
        published=False,
    )


def _panels(
    report: Report,
    envs: Sequence[EnvCurves],
    folder: Path,
    name: str,
    ylabel: str,
    scales: Mapping[str, Scale],
    *,
    published: bool = True,
) -> list[Path]:
    if not envs:
        return []
    figure, axes = new_grid(len(envs), 3, 4.2, 3.0)
    for axis, env in zip(axes, envs, strict=True):
        for curve in env.returns:
            _line(axis, curve, report.runs.labels, scales.get(env.env))
        if published:
            _published(axis, env)
        axis.set_title(env.env, fontsize=9, loc="left")
        axis.xaxis.set_major_formatter(EngFormatter())
    axes[0].set_ylabel(ylabel)
    axes[-1].set_xlabel("frames")
    _legend(figure, axes)
    return save(figure, folder, name)


def _line(axis: Axes, curve: Curve, labels: Sequence[str], scale: Scale | None = None) -> None:
    colour = colour_of(curve.label, labels)
    mean, low, high = (
        scale.apply(values) if scale else values for values in (curve.mean, curve.low, curve.high)
    )
    axis.plot(curve.frames, mean, color=colour, linewidth=1.4, label=curve.label)
    if curve.seeds > 1:
        axis.fill_between(curve.frames, low, high, color=colour, alpha=0.18, linewidth=0)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend under all panels: a label may be missing from any one of them."""
    handles: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=8)


def _published(axis: Axes, env: EnvCurves) -> None:
    """Dopamine's curves, as far as the runs go."""
    for curve in env.published:
        dash = "--" if curve.agent == "DQN" else ":"
        shown = curve.frames <= env.frames[-1]
        if shown.any():
            axis.plot(
                curve.frames[shown], curve.mean[shown], dash, color="#555555", linewidth=1.2,
                label=f"Dopamine {curve.agent} (training, sticky actions)",
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
                _line(axis, curve, report.runs.labels)
            axis.set_title(f"{env.env}: {metric.title}", fontsize=8, loc="left")
            if metric.key == "memory.decayed_share":
                axis.set_ylim(bottom=0)  # often small, and still of weight
            else:
                axis.set_ylim(-0.03, 1.03)
            axis.xaxis.set_major_formatter(EngFormatter())
    _legend(figure, axes)
    return save(figure, folder, "diagnostics")


def _profile(report: Report, folder: Path) -> list[Path]:
    """Performance profiles (Agarwal et al. 2021, Fig. 4)."""
    assert report.profile is not None
    figure, axis = new_figure(4.6, 3.2)
    for label, share in report.profile.shares.items():
        axis.step(
            report.profile.thresholds,
            share,
            where="post",
            color=colour_of(label, report.runs.labels),
            label=label,
        )
    axis.set_xlabel(f"{report.comparison.scale} normalised score τ")
    axis.set_ylabel("share of runs with score > τ")
    axis.legend(fontsize=7)
    return save(figure, folder, "performance_profile")


def _percent_change(report: Report, folder: Path) -> list[Path]:
    """Percent change of the first label over the second, a bar a game."""
    pair = report.comparison.pairs[0]
    main = set(report.runs.main_labels)
    for candidate in report.comparison.pairs:
        if {candidate.x, candidate.y} <= main:
            pair = candidate
            break
    changes = sorted((v, env) for env, v in pair.changes().items() if np.isfinite(v))
    if not changes:
        return []
    figure, axis = new_figure(max(4.0, 0.35 * len(changes) + 2.5), 3.4)
    colours = [colour_of(pair.x if value > 0 else pair.y, report.runs.labels) for value, _ in changes]
    axis.bar([env for _, env in changes], [value for value, _ in changes], color=colours, width=0.7)
    axis.axhline(0, color="#444444", linewidth=0.8)
    axis.tick_params(axis="x", rotation=90 if len(changes) > 6 else 0, labelsize=7)
    axis.set_ylabel("percent change of the mean score")
    axis.set_title(f"{pair.x} over {pair.y}", fontsize=9, loc="left")
    return save(figure, folder, "percent_change")
