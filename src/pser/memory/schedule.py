"""Values that change during training."""

from dataclasses import dataclass

from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Anneal:
    """A straight line from `start` to `end` over `steps`, flat afterwards: β in Schaul et al. 2016, Sec. 3.4."""

    start: float
    """The value at step 0."""
    end: float
    """The value from `steps` on."""
    steps: int
    """How many steps the change takes."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise PserError(f"steps must be at least 1, got {self.steps}: for a constant use start == end")

    def __call__(self, step: int) -> float:
        """The value at this step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        return self.start + share * (self.end - self.start)
