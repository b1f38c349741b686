"""Named sets of settings: each preset is a function from an environment's name to complete settings."""

from collections.abc import Callable
from typing import Any

import pser
from pser.errors import PserError
from pser.learner.settings import (
    AgentSettings,
    EvaluationSettings,
    ExplorationSettings,
    GameSettings,
    OptimizerSettings,
    ReplaySettings,
    RunSettings,
    TrainSettings,
)

PRESET_OF_FAMILY = {"atari": "paper", "minatar": "minatar", "gym": "classic"}
"""The preset taken when none is named."""


RAINBOW_PARTS: dict[str, Any] = {
    "double_q": True,
    "dueling": True,
    "n_step": 3,
    "loss": "c51",
    "noisy": True,
}
"""Rainbow's parts besides prioritized replay, which every preset has."""


RAINBOW_ON_MINATAR: dict[str, Any] = {
    **RAINBOW_PARTS,
    "noisy_sigma": 0.1,
    "alpha": 0.5,
    "priority_signal": "loss",  # its root with α = 1, as in their code, is the same
    "warmup_steps": 1_000,
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "optimizer_eps": 3.125e-4,
}
"""Where Rainbow on MinAtar (Obando-Ceron and Castro 2021) differs from DQN there."""


def paper(env: str) -> TrainSettings:
    """Brittain et al. 2019, DQN and PSER tables; their "frames" are agent steps, as in the authors' code."""
    return TrainSettings(
        game=GameSettings(env=env, max_episode_steps=27_000, life_loss=True, clip_rewards=True),
        replay=ReplaySettings(
            prioritization=pser.PSER(alpha=0.5, eta=0.7, rho=0.4, window=5, decay="max"),
            capacity=1_000_000,
            beta=0.5,
            beta_end=0.5,
        ),
        agent=AgentSettings(
            batch_size=32,
            gamma=0.99,
            warmup_steps=50_000,
            update_period_steps=4,
            target_period_steps=10_000,
        ),
        optimizer=OptimizerSettings(
            optimizer="rmsprop", learning_rate=2.5e-4, rms_decay=0.95, optimizer_eps=1e-5, centered=True
        ),
        exploration=ExplorationSettings(epsilon_start=1.0, epsilon_end=0.01, epsilon_decay_steps=1_000_000),
        evaluation=EvaluationSettings(
            eval_period_frames=1_000_000, eval_frames=500_000, eval_epsilon=0.001, eval_noop_max=30
        ),
        run=RunSettings(
            budget_frames=200_000_000, log_period_frames=100_000, checkpoint_period_frames=1_000_000
        ),
    )


def authors(env: str) -> TrainSettings:
    """What the authors' code does: √Huber as priority with α = 1, the retained priority decays, no no-ops."""
    return paper(env).override(
        {
            "alpha": 1.0,
            "priority_eps": 0.0,
            "priority_signal": "sqrt_loss",
            "decay_from": "priority",
            "decay_on_insert": False,
            "eval_noop_max": 0,
        }
    )


def fast(env: str) -> TrainSettings:
    """A short Atari schedule: eight environments, Adam, Double Q, 3-step returns, quick exploration."""
    return paper(env).override(
        {
            "num_envs": 8,
            "noop_max": 30,
            "capacity": 200_000,
            "n_step": 3,
            "beta": 0.4,
            "beta_end": 1.0,
            "double_q": True,
            "warmup_steps": 20_000,
            "target_period_steps": 8_000,
            "optimizer": "adam",
            "learning_rate": 6.25e-5,
            "optimizer_eps": 1.5e-4,
            "epsilon_decay_steps": 250_000,
            "eval_period_frames": 1_000_000,
            "eval_frames": 0,
            "eval_episodes": 16,
            "eval_num_envs": 8,
            "budget_frames": 10_000_000,
            "log_period_frames": 40_000,
        }
    )


def rainbow(env: str) -> TrainSettings:
    """Rainbow (Hessel et al. 2018) on Atari: all its parts, KL as priority, Adam, learning from 20,000 steps on."""
    return paper(env).override(
        {
            **RAINBOW_PARTS,
            "beta": 0.4,
            "beta_end": 1.0,
            "priority_signal": "kl",
            "warmup_steps": 20_000,
            "target_period_steps": 8_000,
            "max_grad_norm": 10.0,
            "optimizer": "adam",
            "learning_rate": 6.25e-5,
            "optimizer_eps": 1.5e-4,
        }
    )


def der(env: str) -> TrainSettings:
    """Data-efficient Rainbow (van Hasselt et al. 2019): 100,000 steps, an update each, 20-step returns."""
    return rainbow(env).override(
        {
            "network": "der",
            "n_step": 20,
            "noisy_sigma": 0.1,
            "capacity": 100_000,
            "warmup_steps": 1_600,
            "update_period_steps": 1,
            "target_period_steps": 2_000,
            "learning_rate": 1e-4,
            "eval_period_frames": 100_000,
            "eval_frames": 0,
            "eval_episodes": 16,
            "eval_num_envs": 8,
            "budget_frames": 400_000,
            "log_period_frames": 4_000,
            "checkpoint_period_frames": 100_000,
        }
    )


def apex(env: str) -> TrainSettings:
    """Ape-X DQN's settings (Horgan et al. 2018) on one machine: unequal explorers, CurrentTD, batches of 512."""
    return paper(env).override(
        {
            "num_envs": 16,
            "noop_max": 30,
            "capacity": 2_000_000,
            "initial": "td",
            "n_step": 3,
            "alpha": 0.6,
            "beta": 0.4,
            "beta_end": 0.4,
            "double_q": True,
            "dueling": True,
            "batch_size": 512,
            "update_period_steps": 64,  # eight transitions learned per step played, as DQN has it
            "target_period_steps": 160_000,  # 2,500 updates
            "max_grad_norm": 40.0,
            "learning_rate": 6.25e-5,
            "optimizer_eps": 1.5e-7,
            "epsilon_start": 0.4,
            "epsilon_end": 0.4,
            "epsilon_spread": 7.0,
            "eval_num_envs": 8,
        }
    )


def minatar(env: str) -> TrainSettings:
    """MinAtar's usual DQN (Young and Tian 2019), one update per frame."""
    return TrainSettings(
        game=GameSettings(env=env, sticky_actions=0.1),
        replay=ReplaySettings(prioritization=pser.PSER(alpha=0.6), capacity=100_000, beta=0.4, beta_end=1.0),
        agent=AgentSettings(
            batch_size=32,
            gamma=0.99,
            warmup_steps=5_000,
            update_period_steps=1,
            target_period_steps=1_000,
            dueling_shared=True,  # where dueling is on: as in Obando-Ceron and Castro 2021, and half the time
        ),
        optimizer=OptimizerSettings(
            learning_rate=2.5e-4, rms_decay=0.95, optimizer_eps=0.01, eps_in_sqrt=False, centered=True
        ),
        exploration=ExplorationSettings(epsilon_end=0.1, epsilon_decay_steps=100_000),
        evaluation=EvaluationSettings(
            eval_period_frames=50_000, eval_episodes=30, eval_epsilon=0.001, eval_noop_max=0, eval_num_envs=10
        ),
        run=RunSettings(budget_frames=1_000_000, log_period_frames=10_000, checkpoint_period_frames=100_000),
    )


LONGER_STEPS_ON_MINATAR = {"optimizer_eps": 1e-4, "eps_in_sqrt": True}
"""ε inside RMSProp's root: the divisor is at least 0.01, as with 0.01 beside it, and smaller by up to a factor √2."""


def minatar_fast(env: str) -> TrainSettings:
    """MinAtar in minutes: eight environments, one update per four frames, longer steps, 500,000 frames."""
    faster = {"num_envs": 8, "update_period_steps": 4, "budget_frames": 500_000}
    return minatar(env).override({**LONGER_STEPS_ON_MINATAR, **faster})


def rainbow_minatar(env: str) -> TrainSettings:
    """Rainbow on MinAtar as in Obando-Ceron and Castro 2021, at the pace of minatar-fast."""
    return minatar_fast(env).override(RAINBOW_ON_MINATAR)


def classic(env: str) -> TrainSettings:
    """Small control problems such as CartPole: a two-layer network, 3-step returns, short schedules."""
    return TrainSettings(
        game=GameSettings(env=env, num_envs=4),
        replay=ReplaySettings(
            prioritization=pser.PSER(alpha=0.5), capacity=50_000, n_step=3, beta=0.4, beta_end=1.0
        ),
        agent=AgentSettings(
            network="mlp",
            hidden=(128, 128),
            double_q=True,
            batch_size=64,
            warmup_steps=1_000,
            update_period_steps=2,
            target_period_steps=200,
            max_grad_norm=10.0,
        ),
        optimizer=OptimizerSettings(optimizer="adam", learning_rate=3e-4, optimizer_eps=1e-8),
        exploration=ExplorationSettings(epsilon_end=0.04, epsilon_decay_steps=10_000),
        evaluation=EvaluationSettings(
            eval_period_frames=5_000, eval_episodes=20, eval_epsilon=0.0, eval_noop_max=0, eval_num_envs=10
        ),
        run=RunSettings(budget_frames=100_000, log_period_frames=2_000, checkpoint_period_frames=20_000),
    )


PRESETS: dict[str, Callable[[str], TrainSettings]] = {
    "paper": paper,
    "authors": authors,
    "minatar": minatar,
    "classic": classic,
    "fast": fast,
    "rainbow": rainbow,
    "der": der,
    "apex": apex,
    "minatar-fast": minatar_fast,
    "rainbow-minatar": rainbow_minatar,
}
"""Name of a preset → its function."""


def default_preset(env: str) -> str:
    """The preset of the environment's family."""
    return PRESET_OF_FAMILY[GameSettings(env=env).family]


def preset_settings(name: str, env: str) -> TrainSettings:
    """The settings of the named preset for one environment."""
    if name not in PRESETS:
        raise PserError(f"no preset {name!r}: choose one of {', '.join(PRESETS)}")
    return PRESETS[name](env)
