"""The published numbers the package carries: the paper's score table and Dopamine's training curves."""

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DOPAMINE_DIFFERS = (
    "training returns (the ε-greedy policy while it learns), not evaluation",
    "sticky actions (each action is repeated with probability 0.25)",
    "a faster ε schedule (1 → 0.01 over 250,000 agent steps)",
    "the mean of 5 runs",
)
"""How Dopamine's published curves differ from an evaluation run as the paper does it."""


@dataclass(frozen=True, kw_only=True)
class GameScores:
    """One row of the paper's full-results table."""

    game: str
    random: float | None
    """Score of a random player; None where the paper prints a dash."""
    human: float | None
    """Score of a human player; None where the paper prints a dash."""
    per: float
    """Best-snapshot score of DQN with PER."""
    pser: float
    """Best-snapshot score of DQN with PSER."""


@dataclass(frozen=True, kw_only=True)
class PublishedCurve:
    """Dopamine's training return of one game and agent, over its runs."""

    game: str
    agent: str
    runs: int
    frames: NDArray[np.int64]
    """Environment frames at the end of each iteration."""
    mean: FloatArray
    low: FloatArray
    """The lowest of the runs."""
    high: FloatArray
    """The highest of the runs."""


@cache
def paper_scores() -> tuple[GameScores, ...]:
    """The 60 rows of the full-results table (Brittain et al. 2019, appendix), in its order."""
    text = (files("pser") / "data" / "paper_scores.csv").read_text(encoding="utf-8")
    return tuple(
        GameScores(
            game=row["game"],
            random=_optional(row["random"]),
            human=_optional(row["human"]),
            per=float(row["per"]),
            pser=float(row["pser"]),
        )
        for row in csv.DictReader(io.StringIO(text))
    )


@cache
def paper_bold() -> dict[str, str]:
    """Game → which score the paper prints in bold: `per`, `pser` or `both`."""
    text = (files("pser") / "data" / "paper_bold.csv").read_text(encoding="utf-8")
    return {row["game"]: row["bold"] for row in csv.DictReader(io.StringIO(text))}


def human_table(env: str) -> GameScores | None:
    """The paper's row for an environment name such as `atari:Pong`, if it has a human score."""
    family, _, game = env.partition(":")
    if family != "atari":
        return None
    wanted = _plain(game)
    rows = (row for row in paper_scores() if row.human is not None and row.random is not None)
    return next((row for row in rows if _plain(row.game) == wanted), None)


@cache
def dopamine_curves() -> dict[tuple[str, str], PublishedCurve]:
    """Every published curve, by (game, agent); agents are `DQN` and `Rainbow`."""
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in _dopamine_rows():
        grouped.setdefault((row["game"], row["agent"]), []).append(row)
    return {key: _curve(key, rows) for key, rows in grouped.items()}


def dopamine_curve(env: str, agent: str) -> PublishedCurve | None:
    """Dopamine's curve for an environment name such as `atari:Pong`, or None if it has none."""
    family, _, game = env.partition(":")
    if family != "atari":
        return None
    wanted = _plain(game)
    curves = dopamine_curves().items()
    return next((curve for (name, who), curve in curves if who == agent and _plain(name) == wanted), None)


def _plain(game: str) -> str:
    """`ALE/SpaceInvaders-v5`, `space_invaders` and `SpaceInvaders` are one game."""
    name = game.rpartition("/")[2].partition("-")[0]
    return name.replace("_", "").lower()


def _dopamine_rows() -> Iterator[dict[str, str]]:
    packed = (files("pser") / "data" / "dopamine_training_returns.csv.gz").read_bytes()
    yield from csv.DictReader(io.StringIO(gzip.decompress(packed).decode("utf-8")))


def _curve(key: tuple[str, str], rows: list[dict[str, str]]) -> PublishedCurve:
    iterations = np.array([int(row["iteration_1m_frames"]) for row in rows], dtype=np.int64)
    return PublishedCurve(
        game=key[0],
        agent=key[1],
        runs=int(rows[0]["runs"]),
        frames=(iterations + 1) * 1_000_000,
        mean=np.array([float(row["mean"]) for row in rows]),
        low=np.array([float(row["min"]) for row in rows]),
        high=np.array([float(row["max"]) for row in rows]),
    )


def _optional(cell: str) -> float | None:
    return float(cell) if cell else None
