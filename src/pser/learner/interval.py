"""Sums over one logging interval."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from pser.learner.agent import Statistics

MEASURED_EVERY = 16
"""One update in so many is measured: the numbers are to watch, and cost time."""


@dataclass
class Interval:
    """What happened since the last line of train.jsonl; part of a checkpoint."""

    returns: float = 0.0
    lengths: int = 0
    episodes: int = 0
    loss: float = 0.0
    q: float = 0.0
    td_abs: float = 0.0
    updates: int = 0
    measured: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._clock = 0.0

    def restart_clock(self, now: float) -> None:
        """Time before `now` does not count (the process was not running, or was evaluating)."""
        self._clock = now

    def stop_clock(self, now: float) -> None:
        """Count the time since the clock was started; start it again with `restart_clock`."""
        self.seconds += now - self._clock
        self._clock = now

    def add_episode(self, episode_return: float, length: int) -> None:
        """Count a finished game."""
        self.returns += episode_return
        self.lengths += length
        self.episodes += 1

    @property
    def measures_next(self) -> bool:
        """Whether the next update is to be measured: one in so many, the interval's first among them."""
        return self.updates % MEASURED_EVERY == 0

    def add_update(self, statistics: Statistics | None) -> None:
        """Count an update of the network, and what was measured in it."""
        self.updates += 1
        if statistics is not None:
            self.measured += 1
            self.loss += statistics.loss
            self.q += statistics.q
            self.td_abs += statistics.td_abs

    def close(self, now: float, frames: int) -> dict[str, Any]:
        """The interval's means (None where nothing happened); the next interval starts."""
        self.stop_clock(now)
        row = {
            "return_mean": _mean(self.returns, self.episodes),
            "return_count": self.episodes,
            "length_mean": _mean(self.lengths, self.episodes),
            "loss": _mean(self.loss, self.measured),
            "q_mean": _mean(self.q, self.measured),
            "td_abs_mean": _mean(self.td_abs, self.measured),
            "frames_per_second": _mean(float(frames), self.seconds),
        }
        self.set_state({f.name: f.default for f in fields(self)})
        return row

    def get_state(self) -> dict[str, Any]:
        """The sums so far."""
        return asdict(self)

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state`."""
        for name, value in {"measured": state["updates"], **state}.items():  # earlier, every update was
            setattr(self, name, value)


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None
