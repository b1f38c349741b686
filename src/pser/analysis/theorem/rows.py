"""Rows of theorem.json: what a process was measured to take, what the paper prints, and what is exact."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pser.analysis import markdown
from pser.analysis.theorem import steps as theorem
from pser.env.blind_cliffwalk import discount
from pser.learner.tabular.theorem import PROCESSES, Process

Row: TypeAlias = dict[str, Any]


def exact_steps(process: Process, states: int, rho: float | None, eta: float) -> float | None:
    """The exact expected number of updates, where it is known (pser.analysis.theorem.steps)."""
    if process.name == "per_proof":
        return theorem.proof_per(states)
    if process.name == "per_algorithm":
        return theorem.algorithm_per(states)
    if rho is None:
        return None
    gamma = discount(states)
    if process.name == "pser_proof":
        return theorem.proof_pser(states, rho)
    if process.name == "pser_proof_repeated":
        return theorem.proof_pser_repeated(states, rho, gamma)
    if process.name == "pser_kept":
        return theorem.kept_pser(states, rho)
    if process.name == "pser_algorithm_once" and eta == 0.0:
        return theorem.algorithm_pser_once(states, rho, gamma)
    if process.name == "pser_algorithm_repeated":
        return theorem.algorithm_pser_repeated(states, rho, gamma, eta)
    return None


def theorem_row(
    process: Process, states: int, rho: float | None, eta: float, taken: NDArray[np.int64]
) -> Row:
    """One row. For PER both printed values are its formula."""
    printed = theorem.printed_per(states)
    return {
        "process": process.name,
        "states": states,
        "rho": rho,
        "eta": eta,
        "alpha": process.alpha,
        "eps": process.eps,
        "window": process.window,
        "repetitions": len(taken),
        "mean": float(taken.mean()),
        "stderr": float(taken.std(ddof=1) / np.sqrt(len(taken))) if len(taken) > 1 else None,
        "bound_main": printed if rho is None else theorem.printed_bound_main(states, rho),
        "bound_appendix": printed if rho is None else theorem.printed_bound_appendix(states, rho),
        "exact": exact_steps(process, states, rho, eta),
    }


def theorem_tables(rows: list[Row]) -> dict[str, str]:
    """The tables that docs/findings.md quotes, as Markdown, by name."""
    tables = {f"steps-rho-{rho:g}": _steps_table(rows, rho) for rho in _rhos(rows)}
    tables["agreement"] = _agreement_table(rows)
    tables["bounds"] = _bounds_table(rows)
    tables["speed-up"] = _speed_up_table(rows)
    tables["growth"] = _growth_table(rows)
    return tables


def label(row: Row) -> str:
    """A process and its η, as tables and legends call it."""
    etas = next(p.etas for p in PROCESSES if p.name == row["process"])
    return str(row["process"]) + (f" η={row['eta']:g}" if len(etas) > 1 else "")


def _steps_table(rows: list[Row], rho: float) -> str:
    """Measured mean ± standard error, with the exact value where known; the printed bounds on top."""
    mine = [row for row in rows if row["rho"] in (None, rho)]
    states = sorted({row["states"] for row in mine})
    lines = [
        ["printed, PER", *(f"{theorem.printed_per(n):,.2f}" for n in states)],
        ["printed, PSER main text", *(f"{theorem.printed_bound_main(n, rho):,.2f}" for n in states)],
        ["printed, PSER appendix", *(f"{theorem.printed_bound_appendix(n, rho):,.2f}" for n in states)],
    ]
    for name in dict.fromkeys(label(row) for row in mine):
        found = {row["states"]: row for row in mine if label(row) == name}
        lines.append([name, *(_measured(found[n]) if n in found else "–" for n in states)])
    return markdown.table([f"ρ = {rho:g}", *(f"n={n}" for n in states)], lines)


def _measured(row: Row) -> str:
    text = f"{row['mean']:,.2f}" + ("" if row["stderr"] is None else f" ± {row['stderr']:,.2f}")
    return text if row["exact"] is None else f"{text} (exact {row['exact']:,.2f})"


def _agreement_table(rows: list[Row]) -> str:
    """Measured against exact, in standard errors, over all rows of a process."""
    lines = []
    for name in dict.fromkeys(label(row) for row in rows):
        known = [r for r in rows if label(r) == name and r["exact"] is not None and r["stderr"]]
        if known:
            scores = [(row["mean"] - row["exact"]) / row["stderr"] for row in known]
            spread = f"{np.sqrt(np.mean(np.square(scores))):.2f}"
            lines.append(
                [name, str(len(known)), f"{np.mean(scores):+.2f}", spread, f"{max(map(abs, scores)):.2f}"]
            )
    return markdown.table(
        ["process", "rows with an exact value", "mean z", "root mean square z", "largest z, either sign"],
        lines,
    )


def _bounds_table(rows: list[Row]) -> str:
    """For each PSER process: in how many rows the expectation exceeds each printed bound."""
    lines = []
    for name in dict.fromkeys(label(row) for row in rows if row["rho"] is not None):
        mine = [row for row in rows if label(row) == name]
        cells = []
        for bound in ("bound_main", "bound_appendix"):
            worst = max(mine, key=lambda row: _best(row) / row[bound])
            over = sum(_exceeds(row, bound) for row in mine)
            where = f"n={worst['states']}, ρ={worst['rho']:g}"
            cells.append(f"{over} of {len(mine)}, at worst {_best(worst) / worst[bound]:,.2f} × ({where})")
        lines.append([name, *cells])
    return markdown.table(["process", "above the main text's bound", "above the appendix's bound"], lines)


def _best(row: Row) -> float:
    return float(row["mean"] if row["exact"] is None else row["exact"])


def _exceeds(row: Row, bound: str) -> bool:
    """Exactly if the exact value is known, else by more than three standard errors."""
    margin = 1e-9 if row["exact"] is not None else 3.0 * (row["stderr"] or 0.0)
    return bool(_best(row) > row[bound] + margin)


def _speed_up_table(rows: list[Row]) -> str:
    """PSER's expectation over PER's in the same reading, at the smallest and largest n, for each ρ."""
    partner = {"proof": "per_proof", "kept": "per_proof"}
    partner |= {name: f"per_{name}" for name in ("algorithm", "paper", "maxprio")}
    per = {(row["process"], row["states"]): _best(row) for row in rows if row["rho"] is None}
    lines = []
    states = sorted({row["states"] for row in rows if row["states"] > 1})
    shown = [states[0], states[len(states) // 2], states[-1]] if states else []
    for name in dict.fromkeys(label(row) for row in rows if row["rho"] is not None):
        for rho in _rhos(rows):
            mine = {r["states"]: r for r in rows if label(r) == name and r["rho"] == rho}
            reading = partner[next(iter(mine.values()))["process"].split("_")[1]]
            ratios = [f"{_best(mine[n]) / per[reading, n]:.3f}" for n in shown]
            lines.append([name, f"{rho:g}", *ratios])
    return markdown.table(["PSER / PER of the same reading", "ρ", *(f"n={n}" for n in shown)], lines)


def _growth_table(rows: list[Row]) -> str:
    """How the expectation grows at the largest n: E(n) / E(n−1), and E(n) − E(n−1)."""
    lines = []
    rhos = _rhos(rows)
    last = max(row["states"] for row in rows)
    for name in dict.fromkeys(label(row) for row in rows):
        cells = []
        for rho in rhos:
            mine = {r["states"]: _best(r) for r in rows if label(r) == name and r["rho"] in (None, rho)}
            known = last in mine and last - 1 in mine
            cells.append(
                f"× {mine[last] / mine[last - 1]:.2f}, + {mine[last] - mine[last - 1]:,.1f}" if known else "–"
            )
        lines.append([name, *cells])
    return markdown.table([f"from n={last - 1} to n={last}", *(f"ρ={rho:g}" for rho in rhos)], lines)


def _rhos(rows: list[Row]) -> list[float]:
    return sorted({row["rho"] for row in rows if row["rho"] is not None})
