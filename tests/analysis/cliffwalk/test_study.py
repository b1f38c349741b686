import numpy as np
import pytest

from pser.analysis.cliffwalk.curves import mean_curve, thin_curve
from pser.analysis.cliffwalk.study import Ratio, Side, Study, mean_interval
from pser.analysis.cliffwalk.tables import ratio_text, standard_tables
from pser.learner.tabular.q_learning import Agent

PER = Agent(name="per")
PSER = Agent(name="pser", rho=0.4, eta=0.7, decay="max")


def row(agent, seed, crossing, init="max", states=8):
    return {
        "agent": agent.name,
        "init": init,
        "states": states,
        "rho": agent.rho,
        "eta": agent.eta,
        "decay": agent.decay,
        "seed": seed,
        "crossings": {"1e-3": crossing, "1e-5": None if crossing is None else 2 * crossing},
        "first_reward": 3,
        "iterations": 100,
        "collapse": 0.5 if agent.rho else None,
        "mass": None if agent.name == "uniform" else {"1e-3": 7.0, "1e-5": 5.0},
    }


def ratio_of(rows):
    study = Study(rows)
    return study.paired_ratio(Side(agent=PSER, init="max"), Side(agent=PER, init="max"), 8, "1e-3")


def test_paired_ratio_compares_seed_by_seed():
    """Seeds differ by orders of magnitude, the ratio hardly at all: pairing must see that."""
    scale = [10, 100, 1000, 10_000, 100_000, 1_000_000]
    rows = [row(PER, s, 4 * c) for s, c in enumerate(scale)]
    rows += [row(PSER, s, c * (2 + s % 2)) for s, c in enumerate(scale)]
    ratio = ratio_of(rows)
    assert ratio.value == pytest.approx(np.sqrt(0.5 * 0.75))
    assert 0.45 < ratio.low < ratio.value < ratio.high < 0.8
    assert (ratio.pairs, ratio.wins, ratio.censored, ratio.word) == (6, 6, 0, "faster")


def test_censored_pairs_are_left_out_and_counted():
    rows = [row(PER, s, 100) for s in range(4)] + [row(PSER, s, 200 if s else None) for s in range(4)]
    ratio = ratio_of(rows)
    assert (ratio.pairs, ratio.censored, ratio.word) == (3, 1, "slower")
    assert "(1 censored)" in ratio_text(ratio)
    assert Study(rows).geometric_mean(Side(agent=PSER, init="max"), 8, "1e-3") is None
    assert Study(rows).geometric_mean(Side(agent=PER, init="max"), 8, "1e-3") == pytest.approx(100)


def test_no_complete_pair_gives_no_ratio():
    assert ratio_of([row(PER, 0, 100), row(PSER, 1, 100)]) is None
    assert ratio_text(None) == "–"


def test_an_interval_that_contains_one_leaves_the_question_open():
    assert Ratio(value=0.9, low=0.7, high=1.1, pairs=9, wins=5, censored=0).word == "open"
    assert mean_interval(np.array([2.0]))[1:] == (-np.inf, np.inf)


def test_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        _, low, high = mean_interval(rng.normal(size=30))
        hits += low <= 0.0 <= high
    assert hits >= 190


def test_study_lists_what_the_rows_hold():
    control = Agent(name="pser", rho=0.0, eta=0.7, decay="max")
    rows = [row(PER, 0, 9, "eps", 9), row(PSER, 1, 9, "max", 8), row(control, 0, 9, "max", 8)]
    study = Study(rows)
    assert study.states == [8, 9]
    assert study.inits == ["max", "eps"]
    assert study.pser_agents == [PSER]
    assert study.seeds == [0, 1]


def test_standard_tables_name_every_comparison_and_tell_its_direction():
    rows = [
        row(a, s, c)
        for s in range(3)
        for a, c in ((PER, 100 + s), (PSER, 50 + s), (Agent(name="uniform"), 900))
    ]
    tables = standard_tables(rows)
    assert "| PSER ρ=0.4 η=0.7 / PER | max | 0.50" in tables["pser-per-1e-3"]
    assert "faster" in tables["pser-per-1e-3"]
    assert "PER / Uniform" in tables["per-uniform-1e-5"]
    assert "| 0.7 | max | 1 | 1 | 0 | 0 | 0.50 … 0.50 |" in tables["pser-per-count-1e-3"]
    assert "| PSER ρ=0.4 η=0.7 | 0.50 |" in tables["collapse"]
    assert "| PER | 5 |" in tables["mass-1e-5"]
    assert "Uniform" not in tables["mass-1e-5"]


def test_thinned_curve_stays_within_its_tolerance():
    full = np.exp(-np.linspace(0, 9, 1000))
    thin = thin_curve(full, 100, 0.05)
    assert len(thin) < 250
    assert thin[0] == (0, 1.0)
    assert thin[-1] == (99_900, float(full[-1]))
    at = [k for k, _ in thin]
    assert all(k % 100 == 0 for k in at)
    held = np.array([thin[np.searchsorted(at, 100 * k, side="right") - 1][1] for k in range(1000)])
    assert np.abs(full / held - 1).max() <= 0.05


def test_zero_tolerance_keeps_every_change():
    assert thin_curve([1.0, 1.0, 0.5, 0.25], 100, 0.0) == [(0, 1.0), (200, 0.5), (300, 0.25)]


def test_mean_curve_averages_on_the_log_scale_and_holds_ended_runs():
    curves = [[(0, 1.0), (100, 0.01)], [(0, 1.0), (300, 0.0001)]]
    mean, low, high = mean_curve(curves, np.array([0, 100, 300, 500]))
    assert mean == pytest.approx([1.0, 0.1, 0.001, 0.001])
    assert (low <= mean).all()
    assert (mean <= high).all()
    alone = mean_curve(curves[:1], np.array([100]))
    assert alone[0] == alone[1] == alone[2] == pytest.approx([0.01])
