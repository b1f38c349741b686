"""Figures of the Blind Cliffwalk study: error curves laid out like the paper's, growth with n, and PSER over
PER."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pser.analysis.cliffwalk.curves import mean_curve
from pser.analysis.cliffwalk.study import CONFIDENCE, Ratio, Row, Side, Study
from pser.analysis.cliffwalk.tables import INIT_NAMES, ORACLE, PER, UNIFORM
from pser.analysis.colours import BLACK, NOTE, PALETTE, RULE
from pser.analysis.style import new_grid, save
from pser.learner.tabular.q_learning import Agent

COLOURS = {
    "uniform": PALETTE[7],
    "oracle": BLACK,
    "per": PALETTE[1],
    "sweeping": PALETTE[2],
    "backward": PALETTE[3],
}
PSER_COLOURS = (PALETTE[0], PALETTE[4], PALETTE[5])
CONVERGED = 1e-5
POINTS = 400


def draw_cliffwalk_figures(rows: Sequence[Row], folder: Path) -> None:
    """Write every figure as PNG and SVG; `rows` have their curves."""
    study = Study(rows)
    save(curves_figure(study, study.states[-1:], study.inits[:2]), folder, "curves")
    save(curves_figure(study, study.states, study.inits), folder, "curves_all")
    save(growth_figure(study), folder, "growth")
    save(ratio_figure(study, study.states[-1]), folder, "ratios")


def shown_agents(study: Study) -> list[Agent]:
    """The paper's four agents; PSER at the first ρ, with every η."""
    pser = [agent for agent in study.pser_agents if agent.decay == "max"]
    first = [agent for agent in pser if agent.rho == pser[0].rho]
    return [agent for agent in (UNIFORM, PER, *first, ORACLE) if agent in study.agents]


def colour_of(agent: Agent, among: Sequence[Agent]) -> str:
    """One colour an agent; PSER's settings take theirs in order."""
    if agent.name != "pser":
        return COLOURS[agent.name]
    settings = [a for a in among if a.name == "pser"]
    return PSER_COLOURS[settings.index(agent) % len(PSER_COLOURS)]


def curves_figure(study: Study, states: Sequence[int], inits: Sequence[str]) -> Figure:
    """The MSE over iterations: a row of panels for each n, a column for each initialisation."""
    figure, panels = new_grid(len(states) * len(inits), len(inits), 3.6, 2.7)
    agents = shown_agents(study)
    for place, panel in enumerate(panels):
        n, init = states[place // len(inits)], inits[place % len(inits)]
        for agent in agents:
            _draw_curve(panel, study, Side(agent=agent, init=init), n, colour_of(agent, agents))
        name = "max priority" if init == "max" else "ε priority" if init == "eps" else "CurrentTD"
        longest = max(
            row["iterations"] for agent in agents for row in study.runs(Side(agent=agent, init=init), n)
        )
        panel.set(xscale="log", yscale="log", xlim=(100, 1.1 * longest), ylim=(CONVERGED, 0.6))
        panel.minorticks_off()
        panel.set_title(f"{n} states, initialised with {name}", fontsize=10)
        if place >= len(panels) - len(inits):
            panel.set_xlabel("iterations (replayed transitions)")
        if place % len(inits) == 0:
            panel.set_ylabel("MSE of Q")
    _legend(figure, panels[0], 5)
    _note(figure, f"geometric mean of {len(study.seeds)} runs; band: its 68% confidence interval")
    return figure


def _draw_curve(panel: Axes, study: Study, side: Side, n: int, colour: str) -> None:
    curves = [row["curve"] for row in study.runs(side, n)]
    if not curves:
        return
    end = max(curve[-1][0] for curve in curves)
    grid = np.unique(np.geomspace(100, max(end, 200), POINTS).astype(np.int64) // 100 * 100)
    mean, low, high = mean_curve(curves, grid)
    dashes = "--" if side.agent in (UNIFORM, ORACLE) else "-"
    panel.plot(grid, mean, color=colour, label=side.agent.label, linewidth=1.4, linestyle=dashes)
    panel.fill_between(grid, low, high, color=colour, alpha=0.25, linewidth=0)


def growth_figure(study: Study) -> Figure:
    """Iterations to each threshold as n grows: a row for each threshold, a column for each initialisation."""
    columns = len(study.inits)
    figure, panels = new_grid(len(study.thresholds) * columns, columns, 3.6, 2.9)
    kin = [agent for agent in study.agents if agent.name in ("backward", "sweeping")]
    agents = [*shown_agents(study), *kin]
    for place, panel in enumerate(panels):
        threshold, init = study.thresholds[place // columns], study.inits[place % columns]
        for agent in agents:
            means = [study.geometric_mean(Side(agent=agent, init=init), n, threshold) for n in study.states]
            drawn = [np.nan if mean is None else mean for mean in means]
            colour = colour_of(agent, agents)
            panel.plot(study.states, drawn, marker="o", markersize=3.5, color=colour, label=agent.label)
        panel.set_yscale("log")
        panel.minorticks_off()
        panel.set_title(f"to MSE < {threshold}, init {INIT_NAMES[init]}", fontsize=10)
        panel.set_xticks(study.states)
        if place >= len(panels) - columns:
            panel.set_xlabel("states n")
        if place % columns == 0:
            panel.set_ylabel("iterations (geometric mean)")
    _legend(figure, panels[0], 4)
    return figure


def ratio_figure(study: Study, n: int) -> Figure:
    """Iterations of each PSER setting over PER's, with intervals: left of 1 is faster than PER."""
    agents = [*study.pser_agents, *(a for a in study.agents if a.name == "pser" and not a.rho)]
    figure, panels = new_grid(len(study.inits), len(study.inits), 3.6, 0.42 * len(agents) + 1.7)
    for place, (panel, init) in enumerate(zip(panels, study.inits, strict=True)):
        for k, threshold in enumerate(study.thresholds):
            for line, agent in enumerate(agents):
                per = Side(agent=PER, init=init)
                ratio = study.paired_ratio(Side(agent=agent, init=init), per, n, threshold)
                if ratio is not None:
                    _draw_ratio(panel, ratio, line + 0.26 * (k - 0.5), k, f"to MSE < {threshold}")
        panel.axvline(1.0, color=RULE, linewidth=0.9)
        panel.set_xscale("log")
        panel.set_title(f"{n} states, init {INIT_NAMES[init]}", fontsize=10)
        panel.set_xlabel("iterations / PER's iterations")
        panel.set_yticks(range(len(agents)), [agent.label if place == 0 else "" for agent in agents])
        panel.set_ylim(len(agents) - 0.5, -0.5)
        low, high = panel.get_xlim()
        low, high = min(low, 0.4), max(high, 2.5)
        panel.set_xlim(low, high)
        ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= tick <= high]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
    _legend(figure, panels[0], 3)
    interval = f"{CONFIDENCE:.0%} bootstrap interval"
    _note(
        figure, f"geometric mean over {len(study.seeds)} paired seeds, {interval}; left of 1: faster than PER"
    )
    return figure


def _legend(figure: Figure, panel: Axes, columns: int) -> None:
    """One legend for all panels, above them."""
    handles, labels = panel.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    ncols = min(len(unique), columns)
    figure.legend(list(unique.values()), list(unique), loc="outside upper center", ncols=ncols, frameon=False)


def _note(figure: Figure, text: str) -> None:
    """A small line below the panels: what a point and a band are."""
    figure.supxlabel(text, fontsize=8, color=NOTE)


def _draw_ratio(panel: Axes, ratio: Ratio, height: float, k: int, label: str) -> None:
    colour = (PALETTE[1], PALETTE[0], PALETTE[2])[k % 3]
    low, high = max(ratio.low, 1e-3), min(ratio.high, 1e3)
    panel.plot([low, high], [height, height], color=colour, linewidth=1.6)
    marker = "os^"[k % 3]
    panel.plot([ratio.value], [height], marker, color=colour, markersize=4, linestyle="none", label=label)
