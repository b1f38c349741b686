"""What can be named in the settings: a learner, a loss or a strategy of one's own is a file and a line here.

Names of modules, not the modules: whoever reads settings needs no torch.
"""

import importlib
from dataclasses import dataclass
from typing import Any

LEARNERS = {"dqn": "pser.learner.dqn:DQN"}
"""Name of a learner → its class (agent.py says what is asked of it)."""


@dataclass(frozen=True)
class Loss:
    """A loss and what it is about."""

    head: str
    """Its class, a subclass of `pser.learner.head.Head`."""
    of_distributions: bool
    """Whether the network's outputs are distributions of the return, rather than its mean."""


LOSSES = {
    "huber": Loss("pser.learner.huber:HuberHead", of_distributions=False),
    "c51": Loss("pser.learner.c51:C51Head", of_distributions=True),
}
"""Name of a loss → what it is."""


def load(path: str) -> Any:
    """What `package.module:name` names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
