"""stable-baselines3: replay buffers that sample by priority, and the algorithms that learn from them.

`DQN`, `DDPG`, `TD3` and `SAC` are SB3's own, `QRDQN` and `TQC` are those of sb3-contrib (imported when asked for).
"""

from typing import TYPE_CHECKING, Any

from pser.integrations._shared import require_version

# Read against this version: the mechanism runs the library's own `train` (see `algorithms`).
require_version("stable-baselines3", "2.9.2", "2.10")

from pser.integrations.sb3.algorithms import DDPG, DQN, SAC, TD3, Prioritized  # noqa: E402
from pser.integrations.sb3.buffers import (  # noqa: E402
    PrioritizedDictReplayBuffer,
    PrioritizedReplayBuffer,
    PrioritizedSamples,
)
from pser.integrations.sb3.her import PrioritizedHerReplayBuffer  # noqa: E402

if TYPE_CHECKING:
    from pser.integrations.sb3.contrib import QRDQN, TQC

__all__ = [
    "DDPG",
    "DQN",
    "QRDQN",
    "SAC",
    "TD3",
    "TQC",
    "Prioritized",
    "PrioritizedDictReplayBuffer",
    "PrioritizedHerReplayBuffer",
    "PrioritizedReplayBuffer",
    "PrioritizedSamples",
]


def __getattr__(name: str) -> Any:
    if name in ("QRDQN", "TQC"):
        from pser.integrations.sb3 import contrib

        return getattr(contrib, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
