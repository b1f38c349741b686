"""What a network's outputs mean, and the loss they are trained with: the seam for losses.

A loss is one file with a subclass of `Head`, and its line in `LOSSES` (registry.py).
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pser.learner.registry import LOSSES, load
from pser.learner.settings import AgentSettings

SMALL = 1e-10
"""Added under the root of a loss, as in the authors' code."""


class Head(ABC):
    """Pure functions on tensors; `values` is what the network says of every action, (batch, actions · per_action).

    `taken` is what it says of the action taken, and `targets` what that is trained towards, each a row a transition.
    """

    per_action = 1
    """Outputs of the network for one action."""

    def __init__(self, settings: AgentSettings, num_actions: int, device: torch.device) -> None:
        self.num_actions = num_actions

    @abstractmethod
    def q_values(self, values: Tensor) -> Tensor:
        """Q(s, ·), one number per action."""

    @abstractmethod
    def taken(self, values: Tensor, action: Tensor) -> Tensor:
        """What the network says of the action taken."""

    @abstractmethod
    def targets(self, values: Tensor, choice: Tensor | None, reward: Tensor, discount: Tensor) -> Tensor:
        """What to learn, from the target network's `values` of the next state.

        The action there is the best by the same values, or the `choice` of the online network (Double Q).
        """

    @abstractmethod
    def td_errors(self, taken: Tensor, targets: Tensor) -> Tensor:
        """δ of every transition; of the means, if the outputs are distributions."""

    @abstractmethod
    def losses(self, taken: Tensor, targets: Tensor) -> Tensor:
        """The loss of every transition."""

    def target_entropy(self, targets: Tensor) -> Tensor:
        """The least that a loss can become: what the Kullback-Leibler divergence leaves out."""
        raise NotImplementedError(f"{type(self).__name__} is no loss of distributions")

    def gradient(self, values: Tensor, action: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """∂/∂values of mean(w·loss), by autograd. Where it has a simple form, a loss states that instead."""
        with torch.inference_mode(False), torch.enable_grad():
            leaf = values.clone().requires_grad_()
            losses = self.losses(self.taken(leaf, action), targets.clone())
            (gradient,) = torch.autograd.grad((weights.clone() * losses).mean(), leaf)
        return gradient

    def signal(self, kind: str, taken: Tensor, targets: Tensor) -> Tensor:
        """What the memory is told of every transition."""
        if kind == "td":
            return self.td_errors(taken, targets)
        if kind == "clipped":  # max(|δ|, 1) (LAP, Fujimoto et al. 2020)
            return self.td_errors(taken, targets).abs().clamp_(min=1.0)
        if kind == "none":
            return torch.zeros(len(targets), device=targets.device)
        losses = self.losses(taken, targets)
        if kind == "loss":
            return losses
        if kind == "kl":
            return (losses - self.target_entropy(targets)).clamp_(min=0)  # rounding could make it negative
        return (losses + SMALL).sqrt()


def build_head(settings: AgentSettings, num_actions: int, device: torch.device) -> Head:
    """The head of the loss that the settings name."""
    head: Head = load(LOSSES[settings.loss].head)(settings, num_actions, device)
    return head
