"""RMSProp with ε inside the square root, as DQN's authors use it (PyTorch's puts it outside)."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pser import _kernel


class RMSProp(Optimizer):
    """θ ← θ − v with v = momentum·v + lr·g / √(E[g²] − E[g]² + ε) (Graves 2013, Eqs. 38–41).

    Not centered: without E[g]².
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        lr: float,
        decay: float = 0.95,
        eps: float = 1e-5,
        momentum: float = 0.0,
        centered: bool = True,
    ) -> None:
        defaults = {"lr": lr, "decay": decay, "eps": eps, "momentum": momentum, "centered": centered}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Apply the gradients once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(parameter, parameter.grad, group)
        return loss

    def _step_one(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["square"] = torch.zeros_like(parameter)
            if group["centered"]:
                state["mean"] = torch.zeros_like(parameter)
            if group["momentum"]:
                state["velocity"] = torch.zeros_like(parameter)
        update = one_pass if _is_plain(parameter) and _is_plain(gradient) else many_passes
        update(parameter.detach(), gradient, state["square"], state.get("mean"), state.get("velocity"), group)


def one_pass(
    theta: Tensor,
    gradient: Tensor,
    square: Tensor,
    mean: Tensor | None,
    velocity: Tensor | None,
    group: dict[str, Any],
) -> None:
    """The update by the kernel: every value is read and written once."""
    _kernel.rmsprop(
        theta.numpy(),
        gradient.numpy(),
        square.numpy(),
        None if mean is None else mean.numpy(),
        None if velocity is None else velocity.numpy(),
        learning_rate=group["lr"],
        decay=group["decay"],
        eps=group["eps"],
        momentum=group["momentum"],
    )


def many_passes(
    theta: Tensor,
    gradient: Tensor,
    square: Tensor,
    mean: Tensor | None,
    velocity: Tensor | None,
    group: dict[str, Any],
) -> None:
    """The same update for any device and layout, by PyTorch's operations."""
    blend = 1 - group["decay"]
    spread = square.lerp_(gradient * gradient, blend)
    if mean is not None:
        mean.lerp_(gradient, blend)
        spread = (square - mean * mean).clamp_(min=0)  # rounding could make it negative
    step = group["lr"] * gradient / (spread + group["eps"]).sqrt_()
    if velocity is not None:
        step = velocity.mul_(group["momentum"]).add_(step)
    theta.sub_(step)


def _is_plain(tensor: Tensor) -> bool:
    """Whether the kernel can read the tensor: float32, one piece of the computer's own memory."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
