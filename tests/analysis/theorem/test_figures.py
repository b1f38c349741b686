import pytest

pytest.importorskip("matplotlib", reason="the figures need the plot extra")
from matplotlib import pyplot as plt

from pser.analysis.theorem.figures import PROOF, steps_figure
from pser.analysis.theorem.rows import theorem_row
from pser.learner.tabular.theorem import PROCESSES, steps_to_converge


def test_printed_bounds_lie_above_the_measured_lines_they_coincide_with():
    rows = []
    for process in PROCESSES:
        if process.name in PROOF:
            rho = None if process.strategy == "per" else 0.4
            for states in (2, 3):
                taken = steps_to_converge(process, states, rho, process.etas[0], 20, 0)
                rows.append(theorem_row(process, states, rho, process.etas[0], taken))
    figure = steps_figure(rows, PROOF, "a title")
    lines = figure.axes[0].get_lines()
    printed = [line for line in lines if str(line.get_label()).startswith("printed")]
    assert len(printed) == 3
    others = [line.get_zorder() for line in lines if line not in printed]
    assert min(line.get_zorder() for line in printed) > max(others)
    plt.close(figure)
