"""The tables of the Blind Cliffwalk study that docs/findings.md quotes, as Markdown."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from pser.analysis import markdown
from pser.analysis.cliffwalk.study import Ratio, Row, Side, Study
from pser.learner.tabular.q_learning import KIN, Agent

INIT_NAMES = {"max": "max", "eps": "ε", "current_td": "CurrentTD"}
PER, UNIFORM, ORACLE = Agent(name="per"), Agent(name="uniform"), Agent(name="oracle")
Sides: TypeAlias = Callable[[str], tuple[Side, Side]]
"""Initialisation → the two sides to compare."""


def standard_tables(rows: Sequence[Row]) -> dict[str, str]:
    """Every table, by name."""
    study = Study(rows)
    pser = study.pser_agents
    kin = [agent for agent in study.agents if agent.name in ("sweeping", "backward", *KIN)]
    tables: dict[str, str] = {}
    for threshold in study.thresholds:
        tables |= {
            f"iterations-{threshold}": iterations_table(study, threshold),
            f"pser-per-count-{threshold}": count_table(study, threshold),
            f"pser-per-{threshold}": comparison_table(study, _named(pser, PER), threshold),
            f"per-uniform-{threshold}": comparison_table(study, _named([PER], UNIFORM), threshold),
            f"pser-uniform-{threshold}": comparison_table(study, _named(pser, UNIFORM), threshold),
            f"oracle-{threshold}": comparison_table(study, _named([UNIFORM, PER, *pser], ORACLE), threshold),
            f"init-{threshold}": init_table(study, [PER, *pser], threshold),
            f"eta-{threshold}": comparison_table(study, _eta_pairs(study), threshold),
            f"add-max-{threshold}": comparison_table(study, _scheme_pairs(study), threshold),
            f"kin-{threshold}": comparison_table(study, _named(kin, PER), threshold),
        }
        tables[f"mass-{threshold}"] = mean_table(study, partial(_mass, threshold), 0)
    tables["first-reward"] = mean_table(study, lambda row: row["first_reward"], 0)
    tables["collapse"] = mean_table(study, lambda row: row["collapse"], 2)
    return tables


def _mass(threshold: str, row: Row) -> float | None:
    """Σ p^α of the memory when the run crossed the threshold."""
    return None if row["mass"] is None else float(row["mass"][threshold])


def iterations_table(study: Study, threshold: str) -> str:
    """Geometric mean of the iterations to the threshold, a line an agent, a column per init and n."""
    return _by_agent(study, lambda side, n: _whole(study.geometric_mean(side, n, threshold)))


def mean_table(study: Study, value_of: Callable[[Row], float | None], digits: int) -> str:
    """The mean of some value of a run over the seeds, a line an agent, a column per init and n."""

    def cell(side: Side, n: int) -> str:
        values = [value for value in map(value_of, study.runs(side, n)) if value is not None]
        return f"{np.mean(values):,.{digits}f}" if values else "–"

    return _by_agent(study, cell)


def comparison_table(study: Study, pairs: Sequence[tuple[str, Sides]], threshold: str) -> str:
    """For each named pair of sides, the ratio of iterations for every init and n."""
    lines = []
    for name, sides in pairs:
        for init in study.inits:
            one, other = sides(init)
            ratios = [study.paired_ratio(one, other, n, threshold) for n in study.states]
            lines.append([name, INIT_NAMES[init], *map(ratio_text, ratios)])
    return markdown.table(["compared", "init", *(f"n={n}" for n in study.states)], lines)


def init_table(study: Study, agents: Sequence[Agent], threshold: str) -> str:
    """Each agent's other initialisations against its own max."""
    lines = []
    for agent in agents:
        for init in study.inits:
            if init != "max":
                one, other = Side(agent=agent, init=init), Side(agent=agent, init="max")
                ratios = [study.paired_ratio(one, other, n, threshold) for n in study.states]
                lines.append([agent.label, f"{INIT_NAMES[init]} / max", *map(ratio_text, ratios)])
    return markdown.table(["agent", "compared", *(f"n={n}" for n in study.states)], lines)


def count_table(study: Study, threshold: str) -> str:
    """PSER against PER, by η: how many settings and n are faster, slower or open, and the extreme ratios."""
    lines = []
    for eta in sorted({agent.eta for agent in study.pser_agents if agent.eta is not None}):
        for init in study.inits:
            ratios = [
                study.paired_ratio(Side(agent=agent, init=init), Side(agent=PER, init=init), n, threshold)
                for agent in study.pser_agents
                for n in study.states
                if agent.eta == eta
            ]
            known = [ratio for ratio in ratios if ratio is not None]
            if known:
                words = [ratio.word for ratio in known]
                counts = [str(words.count(word)) for word in ("faster", "slower", "open")]
                values = [ratio.value for ratio in known]
                extremes = f"{min(values):.2f} … {max(values):.2f}"
                lines.append([f"{eta:g}", INIT_NAMES[init], str(len(known)), *counts, extremes])
    return markdown.table(["η", "init", "settings × n", "faster", "slower", "open", "ratios"], lines)


def ratio_text(ratio: Ratio | None) -> str:
    """0.43 [0.40, 0.47] faster."""
    if ratio is None:
        return "–"
    text = f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] {ratio.word}"
    return text + (f" ({ratio.censored} censored)" if ratio.censored else "")


def _by_agent(study: Study, cell: Callable[[Side, int], str]) -> str:
    lines = []
    for agent in study.agents:
        sides = [(Side(agent=agent, init=init), n) for init in study.inits for n in study.states]
        cells = [cell(side, n) for side, n in sides]
        if any(text != "–" for text in cells):
            lines.append([agent.label, *cells])
    return markdown.table(
        ["agent", *(f"{INIT_NAMES[i]}, n={n}" for i in study.inits for n in study.states)], lines
    )


def _against(one: Agent, other: Agent) -> Sides:
    return lambda init: (Side(agent=one, init=init), Side(agent=other, init=init))


def _named(agents: Sequence[Agent], other: Agent) -> list[tuple[str, Sides]]:
    return [(f"{agent.label} / {other.label}", _against(agent, other)) for agent in agents]


def _eta_pairs(study: Study) -> list[tuple[str, Sides]]:
    """Each setting with η > 0 against the same with η = 0; PER with η against PER."""
    plain = {(a.rho, a.decay): a for a in study.agents if a.name == "pser" and a.eta == 0.0}
    plain[0.0, "max"] = PER
    return [
        (f"{a.label} / η=0", _against(a, plain[a.rho, a.decay]))
        for a in study.agents
        if a.eta and (a.rho, a.decay) in plain
    ]


def _scheme_pairs(study: Study) -> list[tuple[str, Sides]]:
    """Each setting with ADD against the same with MAX."""
    with_max = {(a.rho, a.eta): a for a in study.pser_agents if a.decay == "max"}
    return [
        (f"{a.label} / MAX", _against(a, with_max[a.rho, a.eta]))
        for a in study.pser_agents
        if a.decay == "add" and (a.rho, a.eta) in with_max
    ]


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
