"""RMSProp with ε inside the square root, as DQN's authors use it (PyTorch's puts it outside)."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

CHUNK = 16_384
"""Elements worked on at a time on the CPU: the five buffers of a chunk then stay in the cache."""


class RMSProp(Optimizer):
    """θ ← θ − v with v = momentum·v + lr·g / √(E[g²] − E[g]² + ε); not centered: without E[g]²."""

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
                    self._step_one(parameter, group)
        return loss

    def _step_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            for name in ("square", "mean", "velocity"):
                if name == "square" or group[{"mean": "centered", "velocity": "momentum"}[name]]:
                    state[name] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        size = CHUNK if parameter.device.type == "cpu" else parameter.numel()
        buffers = [parameter.detach(), parameter.grad, *state.values()]
        chunks = [buffer.view(-1).split(size) for buffer in buffers]
        for values, gradient, *averages in zip(*chunks, strict=True):
            _update(values, gradient, dict(zip(state, averages, strict=True)), group)


def _update(values: Tensor, gradient: Tensor, averages: dict[str, Tensor], group: dict[str, Any]) -> None:
    """One step of centered RMSProp (Graves 2013, Eqs. 38–41) on one chunk."""
    keep, lr = group["decay"], group["lr"]
    square = averages["square"].mul_(keep).addcmul_(gradient, gradient, value=1 - keep)
    if group["centered"]:
        mean = averages["mean"].lerp_(gradient, 1 - keep)
        divisor = torch.addcmul(square, mean, mean, value=-1).add_(group["eps"]).sqrt_()
    else:
        divisor = square.add(group["eps"]).sqrt_()
    if group["momentum"]:
        velocity = averages["velocity"].mul_(group["momentum"]).addcdiv_(gradient, divisor, value=lr)
        values.sub_(velocity)
    else:
        values.addcdiv_(gradient, divisor, value=-lr)
