"""Figures that single studies have of their own, or that only studies of priorities have."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pser.studies import check, epsilon, sharpness
from pser.studies.cells import Cell
from pser.studies.figures import draw_figures
from pser.studies.findings import Findings, render
from pser.studies.report import render as render_report
from pser.studies.report import write_report
from pser.studies.results import results_of
from pser.studies.sources import SHARES, shares_by_arm

from .synthetic import record, records, small_study


def long_runs(study, levels):
    """Runs of 500,000 frames in intervals of 10,000, whose games all return the arm's level."""
    frames = list(range(10_000, 500_001, 10_000))
    made = {}
    for game in study.games:
        for arm in study.arms:
            for seed, level in enumerate(levels.get(arm.name, ())):
                train = {"frames": frames, "return_count": [1000] * 50, "return_mean": [level] * 50}
                path, one = record(study, game, arm, seed, level, train=train)
                made[path] = one
    return made


def drawn(study, found, folder):
    """Name of each figure of its own → its SVG."""
    results = results_of(study, found)
    svgs = {}
    for name, draw in study.figures.items():
        png, svg = draw(results, folder, name)
        assert (png.name, svg.name) == (f"{name}.png", f"{name}.svg")
        svgs[name] = svg.read_text()
    return svgs


def test_our_curves_are_those_that_the_comparison_reads():
    study = check.STUDY
    results = results_of(study, long_runs(study, {"uniform": [3.0, 5.0]}))
    game = study.games[0]
    found = check.curves_as_published(results, game, "uniform", [250_000, 500_000], 50_000)
    expected = [
        [check.as_published(one.curve, frames, 50_000) for frames in (250_000, 500_000)]
        for one in results.records.values()
        if one.env == game.env
    ]
    np.testing.assert_array_equal(found, expected)
    # A run that is not there yet at the last point has no line.
    assert len(check.curves_as_published(results, game, "uniform", [250_000, 600_000], 50_000)) == 0


def test_published_points_lie_over_our_curves(tmp_path):
    svg = drawn(check.STUDY, long_runs(check.STUDY, {"uniform": [3.0, 5.0]}), tmp_path)["published"]
    for text in ("uniform, ours", "uniform, published", "per-loss, published", "breakout", "freeway"):
        assert f"<!-- {text} -->" in svg
    assert "per-loss, ours" not in svg  # has no runs


def test_either_place_of_epsilon_has_its_figure(tmp_path):
    found = long_runs(epsilon.STUDY, {"uniform-beside": [3.0, 5.0]})
    svgs = drawn(epsilon.STUDY, found, tmp_path)
    assert "<!-- uniform-beside, ours -->" in svgs["published-beside"]
    assert "ours" not in svgs["published-inside"]


def test_runs_as_sharp_are_one_mean_whatever_makes_them_sharp(tmp_path, monkeypatch):
    study = sharpness.STUDY
    levels = {"uniform": [4.0], "per-td-0.8": [5.0], "per-loss-0.4": [7.0, 9.0], "per-td-0.4": [1.0]}
    lines = []
    from matplotlib.axes import Axes

    plot = Axes.plot
    monkeypatch.setattr(
        Axes, "plot", lambda axes, *xy, **more: lines.append((xy, more)) or plot(axes, *xy, **more)
    )
    svg = drawn(study, records(study, levels), tmp_path)["sharpness"]
    ((xs, ys, _),) = {tuple(xy) for xy, more in lines if more.get("label") == "PER"}
    assert xs == pytest.approx((0.39, 0.79))
    assert ys == (1.0, 7.0)
    for text in ("uniform replay", "PER", "a run with the loss"):
        assert f"<!-- {text} -->" in svg
    assert "PSER as published" not in svg


def test_mass_by_source_is_drawn_for_arms_whose_records_tell(tmp_path):
    study = small_study()
    found = records(study, {"pser": [1, 2], "uniform": [1, 2]})
    assert not any(path.stem == "sources" for path in draw_figures(results_of(study, found), tmp_path))
    for path, one in found.items():
        shares = (0.1, 0.2, 0.3, 0.4) if "seed-0" in path else (0.3, 0.2, 0.1, 0.4)
        for column, share in zip(SHARES.values(), shares, strict=True):
            one.train[column] = [0.0, share]
    results = results_of(study, found)
    assert shares_by_arm(results) == {  # uniform replay has no sources
        "pser": {
            source: pytest.approx(share) for source, share in zip(SHARES, (0.2, 0.2, 0.2, 0.4), strict=True)
        }
    }
    _, svg = [path for path in draw_figures(results, tmp_path) if path.stem == "sources"]
    for text in ("pser", *SHARES):
        assert f"<!-- {text} -->" in svg.read_text()
    del found[next(path for path in found if "pser" in path)].train[SHARES["decay"]]
    assert shares_by_arm(results_of(study, found))["pser"]["decay"] == pytest.approx(0.4)


def test_a_studys_own_figures_are_in_its_report_and_among_the_findings(tmp_path):
    def draw(results, folder, name):
        assert isinstance(results.cells["gym:CartPole-v1", "pser"], Cell)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        path.write_bytes(b"")
        return [path]

    study = small_study(figures={"mine": draw})
    found = records(study, {"pser": [1, 2], "uniform": [2, 3]})
    page = write_report(results_of(study, found), tmp_path).read_text()
    pictures = re.findall(r"\]\((figures/\w+\.png)\)", page)
    assert pictures == ["figures/mine.png", "figures/curves.png", "figures/measures.png"]
    told = render(Findings({"small": results_of(study, found)}))
    assert "![mine of small](../results/studies/small/figures/mine.png)" in told
    empty = results_of(study, {})
    assert "mine" not in render_report(empty, [])
    assert "mine.png" not in render(Findings({"small": empty}))
    without = replace(study, figures={})
    assert "mine" not in render(Findings({"small": results_of(without, found)}))
