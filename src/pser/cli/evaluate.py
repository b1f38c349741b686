"""Measure a trained agent: the final score of a run, as the paper reports it (200 episodes, best snapshot).

$ pser evaluate runs/breakout --episodes 200
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from pser.cli.parsing import UNSET
from pser.errors import DamagedFileError, PserError, is_real, is_whole


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which run, which of its snapshots, and how it is measured."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    episodes: int = 200
    """Episodes to play."""
    snapshot: Literal["best", "last"] = "best"
    """The snapshot with the best evaluation of the run, or the last one."""
    epsilon: Annotated[float | None, UNSET] = None
    """Share of random actions; by default the run's own in evaluation."""
    num_envs: int = 8
    """Copies of the game played together."""
    seed: int = 0
    """Seed of the games; never the same games as in the run's own evaluations."""
    out: Annotated[Path | None, UNSET] = None
    """File for the score; by default final.json in the run's folder, unless that holds one of more episodes."""
    trust_imports: bool = False
    """Let the run's manifest import Python modules (a game gym:MODULE:ID, a network MODULE:CLASS)."""

    def __post_init__(self) -> None:
        for name in ("episodes", "num_envs"):
            if getattr(self, name) < 1:
                raise PserError(f"{name} must be at least 1, got {getattr(self, name)}: raise it")
        check_play(self.epsilon, self.seed)


def check_play(epsilon: float | None, seed: int) -> None:
    """Refuse what no game can be played with."""
    if epsilon is not None and not 0 <= epsilon <= 1:
        raise PserError(f"epsilon must lie in [0, 1], got {epsilon}: choose a value in between")
    if seed < 0:
        raise PserError(f"seed must be at least 0, got {seed}: raise it")


def run(settings: Settings) -> None:
    """Play the episodes, print the score and write it."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import numpy as np

    from pser.files.atomic import require_writable, write_text
    from pser.learner.evaluation import evaluate
    from pser.learner.family import run_label
    from pser.learner.seeds import derived_seed
    from pser.records.folder import RunFolder
    from pser.run.agent import load_agent
    from pser.run.progress import counting

    folder = RunFolder(settings.run)
    agent, game, saved, frames = load_agent(
        folder,
        settings.snapshot,
        min(settings.num_envs, settings.episodes),
        trust_imports=settings.trust_imports,
    )
    epsilon = saved.evaluation.eval_epsilon if settings.epsilon is None else settings.epsilon
    out = settings.out or folder.final
    earlier = _score_in(out)
    with contextlib.closing(game):
        if settings.out is None and earlier and earlier["episodes"] > settings.episodes:
            raise PserError(
                f"{out} holds a score over {earlier['episodes']} episodes, got --episodes {settings.episodes}: play "
                f"as many, or name a file with --out (--out {out} replaces it)"
            )
        require_writable(out)
        with counting("episodes", settings.episodes) as count:
            result = evaluate(
                agent,
                game,
                epsilon=epsilon,
                seed=derived_seed(settings.seed, "evaluation"),
                episodes=settings.episodes,
                on_episode=count,
            )
    mean, std = float(np.mean(result.returns)), float(np.std(result.returns))
    final = {
        "episodes": len(result.returns),
        "mean_return": mean,
        "std_return": std,
        "returns": result.returns,
        "snapshot": settings.snapshot,
        "snapshot_frames": frames,
        "epsilon": epsilon,
        "seed": settings.seed,
    }
    print(
        f"{saved.game.env} {run_label(saved)}: mean return {mean:.2f} ± {std:.2f} (standard deviation) "
        f"over {len(result.returns)} episodes of the {settings.snapshot} snapshot ({frames:,} frames)",
        flush=True,
    )
    write_text(out, json.dumps(final) + "\n")
    replaced = (
        f", in place of {earlier['mean_return']:.2f} over {earlier['episodes']} episodes of the "
        f"{earlier.get('snapshot', 'unnamed')} snapshot"
        if earlier
        else ""
    )
    print(f"written: {out}{replaced}")


def _score_in(path: Path) -> dict[str, Any] | None:
    """The score that a file holds, if any."""
    from pser.files.json_text import parse_json

    try:
        found = parse_json(path.read_bytes())
    except (OSError, DamagedFileError):
        return None
    is_score = (
        isinstance(found, dict) and is_whole(found.get("episodes")) and is_real(found.get("mean_return"))
    )
    return found if is_score else None
