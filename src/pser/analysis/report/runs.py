"""What is known of a training run: its manifest, its records, its state."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pser.analysis.report.labels import Label, split_label

FloatArray = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Note:
    """Something a reader of the results must know."""

    text: str
    run: str | None = None
    """The run it is about; None if about all."""

    def __str__(self) -> str:
        return f"{self.run}: {self.text}" if self.run else self.text


@dataclass(frozen=True)
class Series:
    """Values over frames, frames strictly increasing, values never NaN."""

    frames: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training run as its folder tells it."""

    name: str
    """Short path, unique within the report."""
    path: Path
    env: str
    replay: str
    label: str
    """Agent_Sampling_Initial_Decay, with the settings that tell variants of one label apart."""
    agent: str
    """As the manifest or the label names it; empty if neither does."""
    seed: int
    preset: str
    manifest: Row
    state: str
    """running, finished, failed, or unknown if status.json is missing."""
    error: str | None
    train: tuple[Row, ...]
    evaluations: tuple[Row, ...]
    final: Row | None

    @property
    def names_agent(self) -> bool:
        """Whether the label begins with the agent."""
        return self.agent != "" and self.label.startswith(f"{self.agent}_")

    @property
    def frames(self) -> int:
        """How far the records reach."""
        ends = [rows[-1]["frames"] for rows in (self.train, self.evaluations) if rows]
        return int(max(ends, default=0))

    def evaluation_series(self) -> Series:
        """Mean return of each evaluation."""
        return series(self.evaluations, "mean_return")

    def training_series(self) -> Series:
        """Mean return of the episodes that ended in each logging interval, exploration included."""
        return series(self.train, "return_mean")

    def metric_series(self, metric: str) -> Series:
        """A column of train.jsonl; `memory.collapse` reaches into the memory's statistics."""
        return series(self.train, metric)


@dataclass(frozen=True)
class RunSet:
    """All runs found, and what there is to say about them."""

    runs: tuple[Run, ...]
    notes: tuple[Note, ...]

    @property
    def envs(self) -> list[str]:
        """Environment names in order."""
        return sorted({run.env for run in self.runs})

    @property
    def labels(self) -> list[str]:
        """Labels agent by agent; of each agent PSER first, then PER, then uniform, then others."""
        return [part.name for part in self.parts]

    @cached_property
    def parts(self) -> list[Label]:
        """The labels' agents and strategies, in the order of `labels`."""
        rank = {"pser": 0, "per": 1, "uniform": 2}
        # Labels that name no agent mean one and the same: the usual one, as whichever runs record it.
        usual = {run.agent for run in self.runs if not run.names_agent}
        found = {
            run.label: split_label(run.label, {run.agent} if run.names_agent else usual, run.replay)
            for run in self.runs
        }
        return sorted(found.values(), key=lambda x: (x.agent, rank.get(x.replay, 3), x.name))

    @property
    def agents(self) -> list[str]:
        """Agents in order."""
        return list(dict.fromkeys(part.agent for part in self.parts))

    @property
    def main_labels(self) -> list[str]:
        """One label an agent and replay: most runs, and among equals the paper's choice (MaxPrio, MAX)."""
        runs = Counter(run.label for run in self.runs)
        best: dict[tuple[str, str], tuple[int, bool, str]] = {}
        for part in self.parts:
            weight = (runs[part.name], part.strategy in ("PSER_MaxPrio_MAX", "PER_MaxPrio"), part.name)
            key = (part.agent, part.replay)
            if key not in best or weight[:2] > best[key][:2]:
                best[key] = weight
        chosen = {name for _, _, name in best.values()}
        return [label for label in self.labels if label in chosen]

    def select(self, *, env: str | None = None, label: str | None = None) -> list[Run]:
        """The runs of an environment, of a label, or of both."""
        return [
            run
            for run in self.runs
            if (env is None or run.env == env) and (label is None or run.label == label)
        ]


def series(rows: Sequence[Row], metric: str) -> Series:
    """One column of the records, without the rows that do not have it."""
    points = [(row["frames"], value) for row in rows if (value := _value(row, metric)) is not None]
    pairs = np.array(points, dtype=np.float64).reshape(-1, 2)
    return Series(pairs[:, 0], pairs[:, 1])


def _value(row: Row, metric: str) -> float | None:
    node: Any = row
    for key in metric.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return float(node) if is_finite(node) else None


def is_finite(value: Any) -> bool:
    """Is it a number that a float holds?"""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
