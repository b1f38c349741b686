"""Are we right? The trainer beside published learning curves of the same set-up."""

import math
from collections.abc import Sequence
from statistics import mean, stdev

from pser.analysis.markdown import table
from pser.analysis.published import published_figures
from pser.studies.arms import PER_LOSS, UNIFORM
from pser.studies.measures import Curve
from pser.studies.results import Results
from pser.studies.study import Game, Study
from pser.studies.telling import Told

AT_FRAMES = (250_000, 500_000)
PUBLISHED = {"uniform": "uniform", "per-loss": "PER"}
"""Arm → what the published figures call it."""
SMOOTHING = 0.99
"""The published curves are a moving average over episodes with this share of the past."""
NEAR = 2.0
"""Standard errors of the difference within which two means are called alike."""


def smoothed_return(curve: Curve, frames: int) -> float | None:
    """The moving average over episodes, as the published curves have it, at so many frames.

    e ← 0.99·e + 0.01·R for each episode's return R; the n episodes of one logged interval count as n times their mean.
    """
    value = None
    for end, count, average in curve:
        if end > frames:
            break
        if count:
            kept = SMOOTHING**count if value is not None else 0.0
            value = kept * (value or 0.0) + (1.0 - kept) * average
    return value


def tell(results: Results) -> Told:
    """Ours beside the published figures: how many standard errors apart."""
    rows, apart = [], []
    for game in results.study.games:
        for figures in published_figures(game.env):
            arm = next((arm for arm, name in PUBLISHED.items() if name == figures.agent), None)
            for frames in AT_FRAMES:
                ours = _ours(results, game, arm, frames)
                if arm is None or not ours:
                    continue
                (at,) = [index for index, known in enumerate(figures.frames) if known == frames]
                published, error = float(figures.mean[at]), float(figures.high[at] - figures.mean[at])
                own_error = stdev(ours) / math.sqrt(len(ours)) if len(ours) > 1 else math.nan
                distance = (mean(ours) - published) / math.hypot(own_error, error)
                apart.append(distance)
                rows.append(
                    [
                        game.env,
                        arm,
                        f"{frames:,}",
                        f"{mean(ours):.2f} ± {own_error:.2f} ({len(ours)})"
                        if len(ours) > 1
                        else f"{ours[0]:.2f} (1)",
                        f"{published:.2f} ± {error:.2f}",
                        "–" if math.isnan(distance) else f"{distance:+.1f}",
                    ]
                )
    known = [distance for distance in apart if not math.isnan(distance)]
    near = sum(abs(distance) <= NEAR for distance in known)
    if not known:
        sentence = "Not known yet: a standard error needs two seeds."
    else:
        sentence = (
            f"At {near} of {len(known)} points our mean lies within two standard errors of the published one"
            f"{'' if near == len(known) else f'; the furthest is {max(known, key=abs):+.1f} away'}."
        )
    header = ["game", "arm", "frames", "ours ± standard error (seeds)", "published", "standard errors apart"]
    return Told(sentence, table(header, rows))


def _ours(results: Results, game: Game, arm: str | None, frames: int) -> Sequence[float]:
    values = [
        smoothed_return(record.curve, frames)
        for record in results.records.values()
        if record.arm == arm and record.env.casefold() == game.env.casefold()
    ]
    return [value for value in values if value is not None]


STUDY = Study(
    name="check",
    question="Are our learning curves those that others published for the same set-up?",
    arms=(UNIFORM, PER_LOSS),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway"), Game(env="minatar:asterix")),
    seeds=3,
    settings={
        "alpha": 0.6,
        "beta": 0.4,
        "beta_end": 0.46,  # 0.4 → 1 over 5M frames, of which these runs have a tenth
        "budget_frames": 500_000,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 50_000,
        "tensorboard": False,
    },
    stopping="after 3 seeds; our mean at 250,000 and 500,000 frames must lie within two standard errors (of the "
    "difference) of the published one, or an experiment must explain why not",
    core_hours=4,
    tell=tell,
)
