from collections.abc import Sequence
from typing import Any

BLOCK_BYTES: int
FAN_OUT: int
COMPILER: str
SANITIZER: str

def has_avx2() -> bool: ...

class Rules:
    def __init__(
        self,
        *,
        kind: str,
        alpha: float,
        eps: float,
        eta: float,
        rho: float,
        window: int,
        decay_floor: float,
        add: bool,
        decay_from_priority: bool,
        decay_on_insert: bool,
        stratified: bool,
        weights_by_memory: bool,
    ) -> None: ...

class Draws:
    def __init__(self, bits: Any) -> None: ...

class Index:
    def __init__(self, capacity: int, streams: int, rules: Rules) -> None: ...
    def append(self, first: Any, priority: Any, stream: Any, ids: Any) -> None: ...
    def sample(self, draws: Draws, beta: float, ids: Any, weights: Any) -> None: ...
    def update(self, ids: Any, td_errors: Any) -> int: ...
    def priority(self, ids: Any, out: Any) -> None: ...
    def probability(self, ids: Any, out: Any) -> None: ...
    def cut(self, stream: int) -> None: ...
    def set_alpha(self, alpha: float) -> None: ...
    def stats(self) -> dict[str, float]: ...
    def columns(self) -> dict[str, Any]: ...
    def broken_invariant(self) -> str: ...
    def get_state(self) -> dict[str, Any]: ...
    def set_state(self, state: dict[str, Any]) -> None: ...
    def blocks(self) -> memoryview: ...
    def lock(self) -> None: ...
    def unlock(self) -> None: ...
    def lose(self) -> None: ...
    @property
    def next_id(self) -> int: ...
    @property
    def oldest_id(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def max_priority(self) -> float: ...
    @property
    def total_mass(self) -> float: ...

def lock_all(indexes: Sequence[Index], patience_ms: int) -> list[bool]: ...

class Outputs:
    def __init__(
        self,
        ids: Any,
        weights: Any,
        probabilities: Any,
        action: Any,
        reward: Any,
        discount: Any,
        terminated: Any,
        now: Sequence[Any],
        next: Sequence[Any],
    ) -> None: ...

class Store:
    def __init__(
        self,
        index: Index,
        n_step: int,
        gamma: float,
        steps: dict[str, Any],
        columns: list[dict[str, Any]],
    ) -> None: ...
    def add(
        self,
        observation: list[Any],
        action: Any,
        reward: Any,
        next_observation: list[Any],
        terminated: Any,
        truncated: Any,
        priority: Any,
        stream: Any,
    ) -> bytes: ...
    def sample(self, draws: Draws, beta: float, outputs: Outputs) -> None: ...
    def read(self, outputs: Outputs) -> None: ...
    def end_episodes(self, stream: Any) -> bytes: ...
    def damage(self, rows: int) -> str: ...

class TabularLoop:
    def __init__(
        self,
        *,
        entry: Any,
        next_state: Any,
        reward: Any,
        discount: Any,
        episode_starts: Any,
        truth: Any,
        actions: int,
        step_size: float,
        index: Index | None,
        replay: str,
        report: str,
        thresholds: Sequence[float],
        record_every: int,
        max_iterations: int,
    ) -> None: ...
    def advance(self, draws: Any) -> int: ...
    def repeat(self, draws: Any, repetitions: int) -> list[int]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def first_reward(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def mse(self) -> float: ...
    @property
    def values(self) -> list[float]: ...
    @property
    def crossings(self) -> list[int]: ...
    @property
    def masses(self) -> list[float]: ...
    @property
    def curve(self) -> list[float]: ...

def rmsprop(
    theta: Any,
    gradient: Any,
    square: Any,
    mean: Any,
    velocity: Any,
    *,
    learning_rate: float,
    decay: float,
    eps: float,
    momentum: float,
) -> None: ...
def convolve(
    cells: Any, weight: Any, bias: Any, out: Any, channels: int, rows: int, columns: int
) -> None: ...
def convolve_gradient(
    cells: Any, slope: Any, gradient: Any, channels: int, rows: int, columns: int
) -> None: ...
