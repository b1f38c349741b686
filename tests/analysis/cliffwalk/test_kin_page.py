"""The page on kin tells what the committed runs of the Blind Cliffwalk say."""

import json
import re
from pathlib import Path

from pser.analysis.cliffwalk.study import Side, Study
from pser.learner.tabular.q_learning import Agent

ROOT = Path(__file__).resolve().parents[3]
ROWS = {
    "Uniform": (Agent(name="uniform"), "max"),
    "PER, all priorities maximal at first": (Agent(name="per"), "max"),
    "PER, CurrentTD": (Agent(name="per"), "current_td"),
    "PSER ρ = 0.4, η = 0, maximal at first": (Agent(name="pser", rho=0.4, eta=0.0, decay="max"), "max"),
    "PSER ρ = 0.4, η = 0, CurrentTD": (Agent(name="pser", rho=0.4, eta=0.0, decay="max"), "current_td"),
    "PSER ρ = 0.4, η = 0.7, maximal at first": (Agent(name="pser", rho=0.4, eta=0.7, decay="max"), "max"),
    "reward back-propagation": (Agent(name="backprop"), "max"),
    "transition sequences, joined at equal states": (Agent(name="sequences"), "max"),
    "ReaPER, ω = 0.2": (Agent(name="reaper"), "max"),
    "introspective replay, runs of 10 steps": (Agent(name="ier"), "max"),
    "episodic backward update, β = 0.5": (Agent(name="ebu"), "max"),
    "prioritized sweeping (has a model)": (Agent(name="sweeping"), "max"),
}


def test_the_table_on_the_page_is_that_of_the_runs():
    study = Study(json.loads((ROOT / "results/cliffwalk/kin/cliffwalk.json").read_text())["rows"])
    page = (ROOT / "docs/kin.md").read_text()
    for label, (agent, init) in ROWS.items():
        means = [study.geometric_mean(Side(agent=agent, init=init), n, "1e-3") for n in (8, 10, 12)]
        cells = " | ".join(f"{mean:,.0f}" for mean in means)
        assert f"| {label} | {cells} |" in page
    assert len(re.findall(r"\| n = \d+", page)) == 3
