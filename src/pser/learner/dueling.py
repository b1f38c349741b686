"""Dueling networks: the outputs are a state value and action advantages, from which Q is put together."""

import torch
from torch import Tensor


def combine(outputs: Tensor, per_action: int) -> Tensor:
    """Q(s, ·) = V(s) + A(s, ·) − mean A(s, ·), atom by atom (Wang et al. 2016, Eq. 9; Hessel et al. 2018).

    (batch, (1 + actions)·per_action), the value first → (batch, actions·per_action).
    """
    rows = len(outputs)
    value = outputs[:, None, :per_action]
    advantage = outputs[:, per_action:].view(rows, -1, per_action)
    return (value + advantage - advantage.mean(1, keepdim=True)).view(rows, -1)


def split_gradient(gradient: Tensor, per_action: int) -> Tensor:
    """∂/∂V = Σ ∂/∂Q, and ∂/∂A = ∂/∂Q − mean ∂/∂Q: the backward pass of `combine`."""
    by_action = gradient.view(len(gradient), -1, per_action)
    to_value = by_action.sum(1)
    to_advantage = by_action - to_value.unsqueeze(1) / by_action.shape[1]
    return torch.cat([to_value, to_advantage.flatten(1)], 1)
