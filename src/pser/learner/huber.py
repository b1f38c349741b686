"""Q-learning with the Huber loss (Mnih et al. 2015): one value per action."""

import torch
from torch import Tensor

from pser import _kernel
from pser.learner.device import kernel_reads
from pser.learner.head import Head


def td_target(value_next: Tensor, reward: Tensor, discount: Tensor) -> Tensor:
    """y = r + γ^m·V(s'), the discount 0 where the episode terminated (Mnih et al. 2015, Eq. 2)."""
    return torch.addcmul(reward, discount, value_next)


def huber(delta: Tensor) -> Tensor:
    """δ²/2 for |δ| ≤ 1, |δ| − 1/2 beyond: c·(|δ| − c/2) with c = min(|δ|, 1)."""
    size = delta.abs()
    inner = size.clamp(max=1.0)
    return inner * (size - 0.5 * inner)


class HuberHead(Head):
    """The outputs are Q(s, ·); δ = y − Q(s, a)."""

    def q_values(self, values: Tensor) -> Tensor:
        """The outputs themselves."""
        return values

    def taken(self, values: Tensor, action: Tensor) -> Tensor:
        """Q(s, a) of the action taken."""
        return values.gather(1, action.unsqueeze(1)).squeeze(1)

    def targets(self, values: Tensor, choice: Tensor | None, reward: Tensor, discount: Tensor) -> Tensor:
        """y with V(s') = max_a Q⁻(s', a), or Q⁻(s', choice) (van Hasselt et al. 2016, Eq. 4)."""
        best = values.amax(1) if choice is None else self.taken(values, choice)
        return td_target(best, reward, discount)

    def td_errors(self, taken: Tensor, targets: Tensor) -> Tensor:
        """δ = y − Q(s, a)."""
        return targets - taken

    def losses(self, taken: Tensor, targets: Tensor) -> Tensor:
        """Huber(δ)."""
        return huber(targets - taken)

    def gradient(self, values: Tensor, action: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """∂/∂Q(s, ·) of mean(w·Huber(δ)): −w·clip(δ, −1, 1)/B at the action taken, 0 elsewhere."""
        if all(map(kernel_reads, (values, targets, weights))):  # one call instead of ten: a batch is small
            gradient = torch.empty_like(values)
            arrays = values, action, targets, weights, gradient
            _kernel.huber_gradient(*(array.numpy() for array in arrays))
            return gradient
        action = action.unsqueeze(1)
        delta = targets.unsqueeze(1).sub(values.gather(1, action))
        slope = delta.clamp_(-1.0, 1.0).mul_(weights.unsqueeze(1)).mul_(-1.0 / len(values))
        return torch.zeros_like(values).scatter_(1, action, slope)
