"""The protocol a library implements to take part, and the list of those that do."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the command itself runs without NumPy
    from benchmarks.workload import Workload

Case = Callable[[int], object]
"""One iteration of what is timed; its argument counts iterations, to cycle through prepared inputs."""

Scenario = str
"""
index      priorities only, no storage: `learn PER`, `learn PSER W=5`, `learn PSER W=20`, `sample`, `update`
index-10m  the same at ten times the capacity
streams    priorities of 64 streams that step together: `learn PER`, `learn PSER W=5`, and these with batches of 512
cold       learn steps of one and of 64 streams, each after a network's gradient step
cold-10m   those of one stream at ten times the capacity
memory     whole transitions, one environment: the same cases and `add`
vector     whole transitions, 64 environments: `add`
sequences  32 windows of 40 steps inside an episode each: `learn`, `sample`
train      gradient steps of whole algorithms: `DQN`, `DQN stock`, …
atari      stacked frames: `sample`; its worker also measures resident memory
compressed Pong  real frames of a game (one of GAMES), compressed: `sample`; likewise
plain Pong       the same as they are; `plain Pong trained` and so on: played by the policy of policies.npz
"""


class Peer(Protocol):
    """A library as its users drive it. One module in `benchmarks.peers` per library, with a `PEER`."""

    name: str
    """The row's name in the report."""
    distributions: tuple[str, ...]
    """The installed packages whose versions the report names."""
    notes: tuple[str, ...]
    """What differs from the other rows: missing rules, and how the missing part is done."""

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Fill a memory to `load.capacity` and return the cases that can be timed on it (none: empty)."""
        ...


MAIN = "main"
TORCHRL = "torchrl"
JAX = "jax"

PEERS: dict[str, str] = {
    "ours": MAIN,
    "cpprb": MAIN,
    "tianshou": MAIN,
    "torchrl": TORCHRL,
    "replaytables": MAIN,
    "flashbax": JAX,
    "plain_copy": MAIN,
    "sb3_adapter": MAIN,
    "tianshou_adapter": MAIN,
    "torchrl_adapter": MAIN,
    "torchrl_compressed": MAIN,
}
"""Module in `benchmarks.peers` → the environment it runs in. A new row is a module and a line here."""


def load_peer(module: str) -> Peer:
    """Import one library's peer; only the worker process of that library does so."""
    peer: Peer = importlib.import_module(f"benchmarks.peers.{module}").PEER
    return peer
