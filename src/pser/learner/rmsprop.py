"""RMSProp with ε inside the square root, as DQN's authors use it (PyTorch's puts it outside)."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


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
        self._scratch: dict[Tensor, Tensor] = {}

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
        """Six passes over the parameter; `square` holds E[g²] + ε, which saves the pass that adds ε."""
        state, blend = self.state[parameter], 1 - group["decay"]
        if not state:
            state["square"] = torch.full_like(parameter, group["eps"])
            if group["centered"]:
                state["mean"] = torch.zeros_like(parameter)
            if group["momentum"]:
                state["velocity"] = torch.zeros_like(parameter)
        square = state["square"]
        if parameter not in self._scratch:
            self._scratch[parameter] = torch.empty_like(square)
        scratch = self._scratch[parameter]
        torch.addcmul(square.new_full((), group["eps"]), gradient, gradient, out=scratch)
        divisor = square.lerp_(scratch, blend)
        if group["centered"]:
            mean = state["mean"].lerp_(gradient, blend)
            divisor = torch.addcmul(square, mean, mean, value=-1, out=scratch)
        root = torch.sqrt(divisor, out=scratch)
        if group["momentum"]:
            velocity = state["velocity"].mul_(group["momentum"])
            parameter.sub_(velocity.addcdiv_(gradient, root, value=group["lr"]))
        else:
            parameter.addcdiv_(gradient, root, value=-group["lr"])
