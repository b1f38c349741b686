"""The README's picture: sampling probabilities along one episode, as the memory itself gives them.

python docs/assets/surprise.py    writes surprise.png and surprise.svg beside this file
"""

from pathlib import Path

import numpy as np

import pser
from pser.analysis.colours import PALETTE
from pser.analysis.style import new_grid, save

STEPS, SURPRISE = 24, 18
QUIET = 0.02  # |δ| of a step that taught nothing new
AGENTS = {
    "PER": (pser.PER(alpha=0.5), PALETTE[1]),
    "PSER": (pser.PSER(alpha=0.5, rho=0.65, window=10), PALETTE[0]),
}
TITLES = (
    "nothing surprising yet",
    f"a surprise at step {SURPRISE}: |δ| = 1",
    "those steps replayed once, |δ| = 0.02",
)


def probabilities(prioritization: pser.Prioritization) -> list[np.ndarray]:
    """P(i) along the episode at the three moments of TITLES."""
    index = pser.PriorityIndex(STEPS, prioritization, seed=0)
    for step in range(STEPS):
        index.append([step == 0], td_error=[QUIET])
    ids, seen = np.arange(STEPS), []
    seen.append(index.probabilities(ids))
    index.update([SURPRISE], [1.0])
    seen.append(index.probabilities(ids))
    led_there = np.arange(SURPRISE - 10, SURPRISE)
    index.update(led_there, np.full(len(led_there), QUIET))
    seen.append(index.probabilities(ids))
    return seen


def main() -> None:
    """Draw the picture."""
    figure, panels = new_grid(6, 3, 3.1, 1.8)
    for row, (name, (prioritization, colour)) in enumerate(AGENTS.items()):
        for column, values in enumerate(probabilities(prioritization)):
            panel = panels[3 * row + column]
            panel.bar(np.arange(STEPS), 100 * values, color=colour, width=0.8)
            panel.set_ylim(0, 28)
            panel.set_xlim(-0.7, STEPS - 0.3)
            panel.set_xticks(range(0, STEPS, 6))
            panel.yaxis.set_major_formatter("{x:.0f}%")
            if row == 0:
                panel.set_title(TITLES[column], fontsize=9.5)
            else:
                panel.set_xlabel("step of the episode")
            if column == 0:
                panel.set_ylabel(f"{name}\nchance of replay")
    save(figure, Path(__file__).parent, "surprise")


if __name__ == "__main__":
    main()
