"""The published numbers the package carries: the paper's score table, and figures of other people's runs."""

import csv
import io
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where published figures come from, and what sets their runs apart from ours."""

    name: str
    what: str
    spread: str
    """What lies between the low and the high figure."""
    differs: tuple[str, ...]


DOPAMINE = Source(
    name="Dopamine",
    what="google/dopamine, baselines/atari/data",
    spread="lowest to highest of 5 runs",
    differs=(
        "training returns (the ε-greedy policy while it learns), not evaluation",
        "sticky actions (each action is repeated with probability 0.25)",
        "a faster ε schedule (1 → 0.01 over 250,000 agent steps)",
        "the mean of 5 runs",
    ),
)
REDUCIBLE_LOSS = Source(
    name="reducible-loss",
    what="computed from the curves of shivakanthsujit/reducible-loss, MinAtar 1.0.10",
    spread="mean ± one standard error over 2 to 5 seeds",
    differs=(
        "training returns, a 0.99 moving average over episodes; a point is the mean of what was logged in the 50,000 "
        "frames before it, of uniform replay the value at their beginning",
        "one update a frame, ε → 0.1 in 100,000 frames, target network every 1,000 updates",
        "PER's priority is (Huber loss + 1e-5)^0.6, far sharper than |δ|^0.6, with β 0.4 → 1 over 5M frames",
    ),
)
CHANGED_SINCE = frozenset({"seaquest"})
"""MinAtar games mended after those runs (in 1.0.11): their figures are carried and never laid beside ours."""


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
class PublishedFigures:
    """Training returns of one game as others published them, at a few numbers of frames."""

    source: Source
    game: str
    agent: str
    """What was trained: `DQN` or `Rainbow`; for MinAtar DQN's replay: `uniform`, `PER` or `ReLo`."""
    frames: NDArray[np.int64]
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    runs: NDArray[np.int64]

    @property
    def name(self) -> str:
        """As legends call it."""
        return f"{self.source.name} {self.agent}"

    def until(self, frames: float) -> "PublishedFigures":
        """The figures up to so many frames."""
        kept = self.frames <= frames
        return replace(
            self,
            frames=self.frames[kept],
            mean=self.mean[kept],
            low=self.low[kept],
            high=self.high[kept],
            runs=self.runs[kept],
        )


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


def published_figures(env: str) -> tuple[PublishedFigures, ...]:
    """What others published of an environment such as `atari:Pong` or `minatar:breakout`; often nothing."""
    family, _, game = env.partition(":")
    wanted = _plain(game)
    if family == "atari":
        return tuple(found for (name, _), found in dopamine_figures().items() if _plain(name) == wanted)
    if family == "minatar":
        every = minatar_figures().items()
        return tuple(
            found for (name, _), found in every if _plain(name) == wanted and name not in CHANGED_SINCE
        )
    return ()


@cache
def dopamine_figures() -> dict[tuple[str, str], PublishedFigures]:
    """By (game, agent): the training iterations that end at 1, 2, 5 … 198 million frames."""
    return {
        key: PublishedFigures(
            source=DOPAMINE,
            game=key[0],
            agent=key[1],
            frames=1_000_000 * _whole(rows, "million_frames"),
            mean=_column(rows, "mean"),
            low=_column(rows, "low"),
            high=_column(rows, "high"),
            runs=_whole(rows, "runs"),
        )
        for key, rows in _grouped("dopamine_figures.csv", "agent").items()
    }


@cache
def minatar_figures() -> dict[tuple[str, str], PublishedFigures]:
    """By (game, replay) at 0.1, 0.25, 0.5, 1, 2, 3 and 5 million frames."""
    names = {"uniform": "uniform", "per": "PER", "relo": "ReLo"}
    figures = {}
    for (game, replay), rows in _grouped("minatar_figures.csv", "replay").items():
        mean, error = _column(rows, "mean_training_return"), _column(rows, "standard_error")
        figures[game, replay] = PublishedFigures(
            source=REDUCIBLE_LOSS,
            game=game,
            agent=names[replay],
            frames=_whole(rows, "frames"),
            mean=mean,
            low=mean - error,
            high=mean + error,
            runs=_whole(rows, "seeds"),
        )
    return figures


def _plain(game: str) -> str:
    """`ALE/SpaceInvaders-v5`, `space_invaders` and `SpaceInvaders` are one game."""
    name = game.rpartition("/")[2].partition("-")[0]
    return name.replace("_", "").lower()


def _grouped(name: str, agent: str) -> dict[tuple[str, str], list[dict[str, str]]]:
    text = (files("pser") / "data" / name).read_text(encoding="utf-8")
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        grouped.setdefault((row["game"], row[agent]), []).append(row)
    return grouped


def _column(rows: list[dict[str, str]], name: str) -> FloatArray:
    return np.array([float(row[name]) for row in rows])


def _whole(rows: list[dict[str, str]], name: str) -> NDArray[np.int64]:
    return np.array([int(row[name]) for row in rows], dtype=np.int64)


def _optional(cell: str) -> float | None:
    return float(cell) if cell else None
