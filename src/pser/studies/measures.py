"""The number that stands for a run: computed from its record's learning curve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Curve = Sequence[tuple[float, float, float]]
"""Frames at the end of each interval, games finished in it, their mean return (0 where none finished)."""


@dataclass(frozen=True)
class Measure:
    """A named function of the learning curve."""

    name: str
    about: str
    compute: Callable[[Curve], float | None]


def return_between(curve: Curve, start: float, end: float) -> float | None:
    """Mean return of the games finished after `start` and up to `end` frames; None without any."""
    within = [(count, mean) for frames, count, mean in curve if start < frames <= end and count]
    games = sum(count for count, _ in within)
    return sum(count * mean for count, mean in within) / games if games else None


def running_mean(curve: Curve) -> list[tuple[float, float]]:
    """Frames, and the mean return of the games finished in the tenth of the run before them, where there were any.

    It ends in `last_tenth`.
    """
    width = 0.1 * curve[-1][0]
    means = [(frames, return_between(curve, frames - width, frames)) for frames, _, _ in curve]
    return [(frames, mean) for frames, mean in means if mean is not None]


def last_tenth(curve: Curve) -> float | None:
    """Mean return of the games finished in the last tenth of the run."""
    end = curve[-1][0]
    return return_between(curve, 0.9 * end, end)


def beginning(curve: Curve) -> float | None:
    """Mean return of the first interval in which games were finished: that of play that has hardly learned."""
    return next((mean for _, count, mean in curve if count), None)


def whole_run(curve: Curve) -> float | None:
    """Mean over the run's intervals of the mean return: the area under the learning curve.

    Each interval counts alike, however many games were finished in it; one without any repeats the one before.
    """
    held = None
    values = []
    for _, count, mean in curve:
        held = mean if count else held
        if held is not None:
            values.append(held)
    return sum(values) / len(values) if values else None


LAST_TENTH = Measure(
    "last tenth", "mean training return over the last tenth of the frames, exploration included", last_tenth
)
WHOLE_RUN = Measure(
    "whole run", "mean training return over the whole run (area under the learning curve)", whole_run
)
OTHERWISE = {LAST_TENTH.name: WHOLE_RUN, WHOLE_RUN.name: LAST_TENTH}
"""A measure's name → one that looks at the run in another way: where it ended, or how soon it got there."""
