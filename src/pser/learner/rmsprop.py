"""RMSProp with ε inside the square root, as DQN's authors use it (PyTorch's puts it outside)."""

import torch
from torch import Tensor

from pser import _kernel


class RMSProp:
    """θ ← θ − v with v = momentum·v + lr·g / √(E[g²] − E[g]² + ε) (Graves 2013, Eqs. 38–41).

    Not centered: without E[g]².
    """

    def __init__(
        self,
        theta: Tensor,
        gradient: Tensor,
        *,
        lr: float,
        decay: float = 0.95,
        eps: float = 1e-5,
        momentum: float = 0.0,
        centered: bool = True,
    ) -> None:
        self.theta, self.gradient = theta.detach(), gradient
        self.lr, self.decay, self.eps, self.momentum = lr, decay, eps, momentum
        self.square = torch.zeros_like(self.theta)
        self.mean = torch.zeros_like(self.theta) if centered else None
        self.velocity = torch.zeros_like(self.theta) if momentum else None
        self._arrays = None
        if _is_plain(self.theta) and _is_plain(gradient):
            tensors = (self.theta, gradient, self.square, self.mean, self.velocity)
            self._arrays = [None if tensor is None else tensor.numpy() for tensor in tensors]

    def step(self) -> None:
        """Apply the gradient once."""
        if self._arrays is None:
            self._many_passes()
        else:
            _kernel.rmsprop(
                *self._arrays,
                learning_rate=self.lr,
                decay=self.decay,
                eps=self.eps,
                momentum=self.momentum,
            )

    @torch.no_grad()
    def _many_passes(self) -> None:
        """The same update for any device and layout, by PyTorch's operations."""
        gradient, blend = self.gradient, 1 - self.decay
        spread = self.square.lerp_(gradient * gradient, blend)
        if self.mean is not None:
            self.mean.lerp_(gradient, blend)
            spread = (self.square - self.mean * self.mean).clamp_(min=0)  # rounding could make it negative
        step = self.lr * gradient / (spread + self.eps).sqrt_()
        if self.velocity is not None:
            step = self.velocity.mul_(self.momentum).add_(step)
        self.theta.sub_(step)

    def state(self) -> dict[str, Tensor]:
        """The running averages by name: the optimizer's own tensors, to be read or written in place."""
        averages = {"square": self.square, "mean": self.mean, "velocity": self.velocity}
        return {name: tensor for name, tensor in averages.items() if tensor is not None}


def _is_plain(tensor: Tensor) -> bool:
    """Whether the kernel can read the tensor: float32, one piece of the computer's own memory."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
