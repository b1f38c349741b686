"""The rule that turns gradients into steps, with a state that can be saved."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam

from pser.errors import PserError
from pser.learner.flat import FlatParameters, checked
from pser.learner.rmsprop import RMSProp
from pser.learner.settings import OptimizerSettings


class Optimizer(Protocol):
    """What an update asks of an optimizer."""

    def step(self, loose: Sequence[Tensor] = ()) -> None:
        """Apply the gradients once: those that lie side by side, or `loose` ones, one for each parameter."""

    def state(self) -> dict[str, Tensor]:
        """All it remembers, by name: its own tensors, to be read or written in place."""


class Adam:
    """PyTorch's Adam (Kingma and Ba 2015) over one tensor, by its function: no hooks, no groups, its state there from
    the start."""

    def __init__(self, flat: FlatParameters, *, lr: float, eps: float) -> None:
        self.flat, self.theta, self.gradient = flat, flat.values.detach(), flat.gradients
        self.lr, self.eps = lr, eps
        self.fused = self.theta.device.type in ("cpu", "cuda")
        self.steps = torch.zeros((), device=self.theta.device if self.fused else "cpu")
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)

    def step(self, loose: Sequence[Tensor] = ()) -> None:
        """Apply the gradient once."""
        if loose:
            self.flat.collect(loose)
        adam(
            [self.theta],
            [self.gradient],
            [self.mean],
            [self.square],
            [],
            [self.steps],
            fused=self.fused,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """The count of steps and the running averages."""
        return {"step": self.steps, "exp_avg": self.mean, "exp_avg_sq": self.square}


def build_optimizer(settings: OptimizerSettings, flat: FlatParameters) -> Optimizer:
    """The optimizer of a network's flat parameters."""
    if settings.optimizer == "adam":
        return Adam(flat, lr=settings.learning_rate, eps=settings.optimizer_eps)
    return RMSProp(
        flat,
        lr=settings.learning_rate,
        decay=settings.rms_decay,
        eps=settings.optimizer_eps,
        eps_in_sqrt=settings.eps_in_sqrt,
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
