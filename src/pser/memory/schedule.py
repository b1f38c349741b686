"""Values that change during training."""

import math
from dataclasses import dataclass

from pser.errors import is_real, is_whole, make_plain, require


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
        make_plain(self)
        for name in ("start", "end"):
            value = getattr(self, name)
            require(
                is_real(value) and math.isfinite(value),
                f"{name} must be a finite number",
                value,
                "β goes from 0.4 to 1",
            )
        require(
            is_whole(self.steps) and self.steps >= 1,
            "steps must be at least 1",
            self.steps,
            "or use a constant",
        )

    def __call__(self, step: int) -> float:
        """The value at this step."""
        share = min(max(float(step) / self.steps, 0.0), 1.0)
        return self.start + share * (self.end - self.start)
