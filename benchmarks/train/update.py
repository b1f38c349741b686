"""One agent's update, of whichever version of pser this interpreter has.

    python -m benchmarks.train.update {minatar,atari,mlp} {default,autograd,written}

`default` is the network at hand, `autograd` the same inside a module that no fast path knows, `written` one of the same
layers as anybody would write it. The first needs nothing of the package but what every version has, so that versions
can be laid side by side.
"""

import json
import os
import sys
import time
import warnings
from types import SimpleNamespace
from typing import Any

TASKS: dict[str, tuple[str, str, tuple[int, ...], int]] = {
    "minatar": ("minatar", "minatar:breakout", (4, 10, 10), 20),
    "atari": ("paper", "atari:Breakout", (4, 84, 84), 2),
    "mlp": ("classic", "gym:CartPole-v1", (4,), 40),
}
"""Task → preset, game, shape of an observation, updates a turn."""
ACTIONS = 3


def batch_of(task: str, shape: tuple[int, ...], size: int) -> Any:
    """A batch like those of the game: a screen of MinAtar's has few cells that are not empty."""
    import numpy as np

    rng = np.random.default_rng(0)

    def observations() -> Any:
        if task == "minatar":
            return rng.random((size, *shape)) < 0.08
        if task == "atari":
            return rng.integers(0, 256, (size, *shape), dtype=np.uint8)
        return rng.standard_normal((size, *shape)).astype(np.float32)

    return SimpleNamespace(
        observation=observations(),
        next_observation=observations(),
        action=rng.integers(0, ACTIONS, size),
        reward=rng.random(size).astype(np.float32),
        discount=np.full(size, 0.99, np.float32),
        weights=rng.random(size).astype(np.float32),
    )


def hidden_network(task: str) -> Any:
    """A factory of the network at hand, inside a module that is not recognised."""
    from torch import Tensor, nn

    from pser.learner.networks import Streams, build_network

    class Hidden(nn.Module):
        def __init__(self, shape: tuple[int, ...], num_outputs: int) -> None:
            super().__init__()
            kind = "nature" if task == "atari" else task
            self.inner = build_network(kind, shape, Streams((num_outputs,)), hidden=(128, 128))

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.inner(x)
            return out

    return Hidden


def written_network(task: str) -> Any:
    """A factory of the same layers, written as anybody would write them."""
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    class Perceptron(nn.Module):
        def __init__(self, shape: tuple[int, ...], num_outputs: int) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(shape[0], 128), nn.Linear(128, 128)
            self.last = nn.Linear(128, num_outputs)

        def forward(self, x: Tensor) -> Tensor:
            x = functional.relu(self.first(x))
            x = functional.relu(self.second(x))
            out: Tensor = self.last(x)
            return out

    class Planes(nn.Module):
        def __init__(self, shape: tuple[int, ...], num_outputs: int) -> None:
            super().__init__()
            self.conv, self.hidden = nn.Conv2d(shape[0], 16, 3), nn.Linear(1024, 128)
            self.last = nn.Linear(128, num_outputs)

        def forward(self, x: Tensor) -> Tensor:
            x = functional.relu(self.conv(x))
            x = functional.relu(self.hidden(torch.flatten(x, 1)))
            out: Tensor = self.last(x)
            return out

    class Nature(nn.Module):
        def __init__(self, shape: tuple[int, ...], num_outputs: int) -> None:
            super().__init__()
            self.convs = nn.ModuleList(
                [nn.Conv2d(shape[0], 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3)]
            )
            self.hidden, self.last = nn.Linear(3136, 512), nn.Linear(512, num_outputs)

        def forward(self, x: Tensor) -> Tensor:
            x = x / 255
            for conv in self.convs:
                x = functional.relu(conv(x))
            x = functional.relu(self.hidden(torch.flatten(x, 1)))
            out: Tensor = self.last(x)
            return out

    return {"mlp": Perceptron, "minatar": Planes, "atari": Nature}[task]


def main() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    from pser.learner.device import configure_torch
    from pser.learner.dqn import DQN
    from pser.learner.presets import preset_settings

    task, which = sys.argv[1:3]
    preset, game, shape, updates = TASKS[task]
    settings = preset_settings(preset, game).override({"double_q": False, "max_grad_norm": 0.0})
    factories = {"autograd": hidden_network, "written": written_network}
    own = {"network": factories[which](task)} if which in factories else {}
    agent = DQN(settings, shape, ACTIONS, seed=1, device=configure_torch("cpu", 1), **own)
    if which == "autograd":
        assert type(agent.online_path).__name__ == "AutogradPath"  # or the numbers would be another path's
    batch = batch_of(task, shape, settings.agent.batch_size)
    unmeasured: dict[str, bool] = {}
    try:  # as the loop does: statistics are taken of one update in 16
        agent.learn(batch, measure=False)
        unmeasured = {"measure": False}
    except TypeError:
        pass
    for _ in range(3 * updates):
        agent.learn(batch, **unmeasured)
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for number in range(updates):
            agent.learn(batch, **(unmeasured if number % 16 else {}))
        spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
