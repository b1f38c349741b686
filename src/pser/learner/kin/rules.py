"""The settings of the kin: one frozen class each, read without torch."""

from dataclasses import dataclass

from pser.errors import is_real, is_whole, require


@dataclass(frozen=True, kw_only=True)
class RewardBackprop:
    """Priorities that start at rewards and walk backward."""

    high_priority: float = 1.0
    """Priority of the transition that the next replay should find."""
    low_priority: float = 0.01
    """Priority of all others."""

    def __post_init__(self) -> None:
        low, high = self.low_priority, self.high_priority
        ordered = is_real(low) and is_real(high) and 0.0 < low <= high
        require(ordered, "low_priority must be above 0 and at most high_priority", low, "try 0.01 below 1")


@dataclass(frozen=True, kw_only=True)
class ReaPER:
    """PER with each TD error weighted by the reliability of its target."""

    alpha: float = 0.4
    """α, exponent of |δ|."""
    omega: float = 0.2
    """ω, exponent of the reliability; 0 is PER."""
    eps: float = 1e-4
    """ε, added to |δ|."""

    def __post_init__(self) -> None:
        for name in ("alpha", "omega"):
            value = getattr(self, name)
            require(is_real(value) and 0.0 <= value <= 1.0, f"{name} must be from 0 to 1", value, "try 0.4")
        require(self.alpha > 0, "alpha must be above 0", self.alpha, "use uniform replay")
        require(is_real(self.eps) and self.eps >= 0, "eps must be at least 0", self.eps, "try 1e-4")


@dataclass(frozen=True, kw_only=True)
class BackwardUpdate:
    """Whole episodes, with targets that carry a reward back in one go."""

    diffusion: float = 0.5
    """β: how far the value of the action taken is moved towards its fresh target; 0 is plain Q-learning."""

    def __post_init__(self) -> None:
        fits = is_real(self.diffusion) and 0.0 <= self.diffusion <= 1.0
        require(fits, "diffusion must be from 0 to 1", self.diffusion, "the source uses 0.5")


@dataclass(frozen=True, kw_only=True)
class Introspective:
    """Batches that run backward from the largest surprises."""

    pivots: int = 32
    """Transitions that one look at the surprises chooses, each for one batch; 1 looks before every batch."""

    def __post_init__(self) -> None:
        value = self.pivots
        require(is_whole(value) and value >= 1, "pivots must be at least 1", value, "raise it")


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """Uniform replay beside a library of sequences that led to surprises."""

    library_size: int = 50
    """Sequences kept."""
    sequence_length: int = 10
    """Steps of a sequence, its end included."""
    library_share: float = 0.5
    """Share of the batches that come from the library."""

    def __post_init__(self) -> None:
        for name in ("library_size", "sequence_length"):
            value = getattr(self, name)
            require(is_whole(value) and value >= 1, f"{name} must be at least 1", value, "raise it")
        fits = is_real(self.library_share) and 0.0 <= self.library_share <= 1.0
        require(fits, "library_share must be from 0 to 1", self.library_share, "try 0.5")
