"""Write a video (MP4 or GIF) of a trained agent playing.

$ pser watch runs/breakout --out breakout.mp4
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pser.cli.evaluate import check_play
from pser.cli.parsing import UNSET
from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which run, how much of it, and where the video goes."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    out: Annotated[Path | None, UNSET] = None
    """The video, .mp4 or .gif; by default RUN/video.mp4, or RUN/video.gif where no MP4 can be written."""
    episodes: int = 1
    """Episodes to show."""
    max_steps: int = 2_000
    """The video ends after this many steps at the latest."""
    snapshot: Literal["best", "last"] = "best"
    """The snapshot with the best evaluation of the run, or the last one."""
    epsilon: Annotated[float | None, UNSET] = None
    """Share of random actions; by default the run's own in evaluation."""
    fps: int = 15
    """Steps shown per second."""
    min_height: int = 320
    """Small screens are enlarged, by a whole factor, to about this many pixels."""
    seed: int = 0
    """Seed of the game."""
    trust_imports: bool = False
    """Let the run's manifest import Python modules (a game gym:MODULE:ID, a network MODULE:CLASS)."""

    def __post_init__(self) -> None:
        for name in ("episodes", "max_steps", "fps", "min_height"):
            if getattr(self, name) < 1:
                raise PserError(f"{name} must be at least 1, got {getattr(self, name)}: raise it")
        check_play(self.epsilon, self.seed)
        if self.out is not None and self.out.suffix.lower() not in (".mp4", ".gif"):
            raise PserError(f"a video is an .mp4 or a .gif, got {self.out}: rename it")


def run(settings: Settings) -> None:
    """Play and write the video."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for device in (
        "VIDEO",
        "AUDIO",
    ):  # Gymnasium's games draw by SDL, which else looks for a desktop and complains
        os.environ.setdefault(f"SDL_{device}DRIVER", "dummy")
    import numpy as np

    from pser.learner.seeds import derived_seed
    from pser.records.folder import RunFolder
    from pser.run.agent import load_agent
    from pser.run.video import best_suffix, write_video

    out = settings.out or settings.run / f"video{best_suffix()}"
    agent, game, saved, _ = load_agent(
        RunFolder(settings.run), settings.snapshot, 1, trust_imports=settings.trust_imports
    )
    epsilon = saved.evaluation.eval_epsilon if settings.epsilon is None else settings.epsilon
    rng = np.random.default_rng(settings.seed)
    returns = list[float]()
    with contextlib.closing(game):
        observation = game.reset(derived_seed(settings.seed, "evaluation"))
        images = [game.render()]
        while len(returns) < settings.episodes and len(images) <= settings.max_steps:
            step = game.step(agent.act(observation, epsilon, rng))
            observation = step.observation
            images.append(game.render())
            if step.finished[0]:
                returns.append(float(step.episode_return[0]))
    write_video(out, images, fps=settings.fps, min_height=settings.min_height)
    scores = ", ".join(f"{value:g}" for value in returns) or "cut before the end of the episode"
    print(f"{out}: {len(images):,} images, return {scores}")
