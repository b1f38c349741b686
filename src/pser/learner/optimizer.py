"""The rule that turns gradients into steps, with a state that can be saved."""

from typing import Any, Protocol

import torch
from torch import Tensor

from pser.errors import PserError
from pser.learner.flat import FlatParameters, checked
from pser.learner.rmsprop import RMSProp
from pser.learner.settings import OptimizerSettings


class Optimizer(Protocol):
    """What an update asks of an optimizer."""

    def step(self) -> Any:
        """Apply the gradients once."""

    def state(self) -> dict[str, Tensor]:
        """All it remembers, by name: its own tensors, to be read or written in place."""


class Adam:
    """PyTorch's Adam (Kingma and Ba 2015) over one tensor, its state there from the start."""

    def __init__(self, theta: Tensor, *, lr: float, eps: float) -> None:
        fused = theta.device.type in ("cpu", "cuda")
        inner = torch.optim.Adam([theta], lr=lr, eps=eps, fused=fused, capturable=False)
        inner.state[theta] = self._state = {
            "step": torch.zeros((), device=theta.device if fused else "cpu"),
            "exp_avg": torch.zeros_like(theta, requires_grad=False),
            "exp_avg_sq": torch.zeros_like(theta, requires_grad=False),
        }
        self.step = inner.step

    def state(self) -> dict[str, Tensor]:
        """The count of steps and the running averages."""
        return self._state


def build_optimizer(settings: OptimizerSettings, flat: FlatParameters) -> Optimizer:
    """The optimizer of a network's flat parameters."""
    if settings.optimizer == "adam":
        return Adam(flat.values, lr=settings.learning_rate, eps=settings.optimizer_eps)
    return RMSProp(
        flat.values,
        flat.gradients,
        lr=settings.learning_rate,
        decay=settings.rms_decay,
        eps=settings.optimizer_eps,
        momentum=settings.momentum,
        centered=settings.centered,
    )


def checked_state(optimizer: Optimizer, saved: object) -> dict[str, Tensor]:
    """The saved state of an optimizer, if it is one of this optimizer."""
    own = optimizer.state()
    if saved == {}:  # from before the first update, by an earlier version
        return {}
    if not isinstance(saved, dict) or set(saved) != set(own):
        got = ", ".join(map(str, saved)) if isinstance(saved, dict) else type(saved).__name__
        raise PserError(
            f"a saved optimizer must hold {', '.join(own)}, got {got}: restore the manifest that belongs to it"
        )
    return {
        name: checked(saved[name], tuple(value.shape), f"the optimizer's {name}")
        for name, value in own.items()
    }
