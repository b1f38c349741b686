"""What each algorithm's networks say of a batch: the value of what follows, and by every critic that of the action.

The equations of the library's own `train`, by which TD errors are known before anything is learned from them.
"""

from typing import Any

import torch as th

Values = tuple[th.Tensor, th.Tensor]
"""V(s') as the target networks see it, (batch, 1), and Q(s, a) by each critic, (batch, critics)."""


def of_dqn(model: Any, batch: Any) -> Values:
    """max_a Q⁻(s', a), and Q(s, a)."""
    following = model.q_net_target(batch.next_observations).max(dim=1, keepdim=True).values
    return following, model.q_net(batch.observations).gather(1, batch.actions.long())


def of_qrdqn(model: Any, batch: Any) -> Values:
    """The same of the distributions' means."""
    following = model.quantile_net_target(batch.next_observations).mean(dim=1).max(dim=1, keepdim=True).values
    return following, model.quantile_net(batch.observations).mean(dim=1).gather(1, batch.actions.long())


def of_td3(model: Any, batch: Any) -> Values:
    """min over the critics of Q⁻(s', π⁻(s')), without the noise that smooths it in training."""
    action = model.actor_target(batch.next_observations)
    following = th.cat(model.critic_target(batch.next_observations, action), dim=1)
    return following.min(dim=1, keepdim=True).values, th.cat(
        model.critic(batch.observations, batch.actions), dim=1
    )


def of_sac(model: Any, batch: Any) -> Values:
    """min over the critics of Q⁻(s', a') − α·ln π(a'|s'), a' drawn from the policy."""
    action, log_probability = model.actor.action_log_prob(batch.next_observations)
    following = th.cat(model.critic_target(batch.next_observations, action), dim=1)
    following = following.min(dim=1, keepdim=True).values - _bonus(model, log_probability)
    return following, th.cat(model.critic(batch.observations, batch.actions), dim=1)


def of_tqc(model: Any, batch: Any) -> Values:
    """The mean of the target quantiles that are kept − α·ln π(a'|s'), and each critic's mean."""
    action, log_probability = model.actor.action_log_prob(batch.next_observations)
    quantiles = model.critic_target(batch.next_observations, action).flatten(1).sort().values
    dropped = model.top_quantiles_to_drop_per_net * model.critic.n_critics
    kept = quantiles[:, : model.critic.quantiles_total - dropped].mean(dim=1, keepdim=True)
    current = model.critic(batch.observations, batch.actions).mean(dim=2)
    return kept - _bonus(model, log_probability), current


def _bonus(model: Any, log_probability: th.Tensor) -> Any:
    """α·ln π(a|s), with α as it is now."""
    learned = model.ent_coef_optimizer is not None and model.log_ent_coef is not None
    coefficient = th.exp(model.log_ent_coef) if learned else model.ent_coef_tensor
    return coefficient * log_probability.reshape(-1, 1)
