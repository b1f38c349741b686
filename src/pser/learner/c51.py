"""Distributional Q-learning, C51 (Bellemare et al. 2017): a distribution of the return over fixed atoms per action."""

import torch
from torch import Tensor

from pser.learner.head import Head
from pser.learner.settings import AgentSettings


def project(
    probabilities: Tensor, reward: Tensor, discount: Tensor, support: Tensor, v_min: float, v_max: float
) -> Tensor:
    """The distribution of r + γ^m·Z on the support's own atoms (Bellemare et al. 2017, Algorithm 1).

    Each atom's mass goes to its two neighbours by nearness; values beyond the support go to its ends. No mass is
    lost where a value meets an atom: its share of the upper neighbour is then zero.
    """
    last = len(support) - 1
    values = torch.addcmul(reward.unsqueeze(1), discount.unsqueeze(1), support)  # (batch, atoms)
    places = values.sub_(v_min).mul_(last / (v_max - v_min)).clamp_(0, last)
    lower = places.floor()
    upper_mass = probabilities * (places - lower)
    below = lower.to(torch.int64)
    projected = torch.zeros_like(probabilities).scatter_add_(1, below, probabilities - upper_mass)
    return projected.scatter_add_(1, (below + 1).clamp_(max=last), upper_mass)


def cross_entropy(log_probabilities: Tensor, target: Tensor) -> Tensor:
    """−Σ m·log p over the atoms (Bellemare et al. 2017, Algorithm 1)."""
    return -(target * log_probabilities).sum(1)


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ m·log m over the atoms, 0·log 0 being 0."""
    return -torch.xlogy(probabilities, probabilities).sum(1)


class C51Head(Head):
    """The outputs are logits of atoms; Q(s, a) is the mean of a's distribution.

    `taken` are log-probabilities of the action taken, `targets` probabilities; both (batch, atoms).
    """

    def __init__(self, settings: AgentSettings, num_actions: int, device: torch.device) -> None:
        super().__init__(settings, num_actions, device)
        self.per_action = settings.atoms
        self.v_min, self.v_max = settings.v_min, settings.v_max
        self.atoms = torch.arange(settings.atoms, device=device)
        self.support = torch.linspace(self.v_min, self.v_max, settings.atoms, device=device)

    def q_values(self, values: Tensor) -> Tensor:
        """Q(s, a) = Σ z·p(s, a) over the atoms."""
        return values.view(len(values), -1, self.per_action).softmax(2) @ self.support

    def _place(self, action: Tensor) -> Tensor:
        """Where the atoms of one action per row lie: (batch, atoms) places in a row of values."""
        return action.unsqueeze(1) * self.per_action + self.atoms

    def _of_action(self, values: Tensor, action: Tensor) -> Tensor:
        """The logits of one action per row."""
        return values.gather(1, self._place(action))

    def taken(self, values: Tensor, action: Tensor) -> Tensor:
        """log p(s, a) of the action taken."""
        return self._of_action(values, action).log_softmax(1)

    def targets(self, values: Tensor, choice: Tensor | None, reward: Tensor, discount: Tensor) -> Tensor:
        """The projected distribution of the best next action, by its mean (Double Q: by the online network's)."""
        best = self.q_values(values).argmax(1) if choice is None else choice
        probabilities = self._of_action(values, best).softmax(1)
        return project(probabilities, reward, discount, self.support, self.v_min, self.v_max)

    def td_errors(self, taken: Tensor, targets: Tensor) -> Tensor:
        """δ between the means of the two distributions."""
        return (targets - taken.exp()) @ self.support

    def losses(self, taken: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy between the target and what the network says."""
        return cross_entropy(taken, targets)

    def target_entropy(self, targets: Tensor) -> Tensor:
        """What of the cross-entropy no learning can take away."""
        return entropy(targets)

    def gradient(self, values: Tensor, action: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """∂/∂logits of mean(w·cross-entropy): w·(p − m)/B at the action taken, 0 elsewhere."""
        place = self._place(action)
        slope = values.gather(1, place).softmax(1).sub_(targets).mul_((weights / len(values)).unsqueeze(1))
        return torch.zeros_like(values).scatter_(1, place, slope)
