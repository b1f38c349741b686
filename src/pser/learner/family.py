"""The family of agents: five switches, the names of their combinations, and how runs are labelled by them."""

from collections.abc import Mapping
from typing import Any

from pser.errors import PserError
from pser.learner.presets import default_preset, preset_settings
from pser.learner.settings import TrainSettings

N_STEP = 3
"""Rewards summed by an agent that is named n-step, unless its preset sums more than one (Hessel et al. 2018)."""

PARTS = ("double", "dueling", "n-step", "c51", "noisy")
"""Rainbow's parts besides prioritized replay, which has settings of its own (Hessel et al. 2018)."""

TITLES = {"double": "Double", "dueling": "Dueling", "n-step": "NStep", "c51": "C51", "noisy": "Noisy"}
"""The parts as labels write them."""

AGENTS: dict[str, frozenset[str]] = {
    "dqn": frozenset(),
    **{part: frozenset({part}) for part in PARTS},
    "rainbow": frozenset(PARTS),
    **{f"rainbow-no-{part}": frozenset(PARTS) - {part} for part in PARTS},
}
"""Name of an agent → the parts it has: Rainbow's ablation is these names."""


def parts_of(settings: TrainSettings) -> frozenset[str]:
    """The parts that a run's agent has."""
    agent = settings.agent
    has = {
        "double": agent.double_q,
        "dueling": agent.dueling,
        "n-step": settings.replay.n_step > 1,
        "c51": agent.loss == "c51",
        "noisy": agent.noisy,
    }
    return frozenset(part for part in PARTS if has[part])


def switches(name: str, base: TrainSettings) -> Mapping[str, Any]:
    """The settings that make the named agent of a preset's: every part it has on, every other off."""
    if name not in AGENTS:
        raise PserError(f"no agent {name!r}: choose one of {', '.join(AGENTS)}")
    parts, signal = AGENTS[name], base.replay.priority_signal
    if signal == "kl" and "c51" not in parts:
        signal = "td"  # without distributions there is no divergence between them
    return {
        "priority_signal": signal,
        "double_q": "double" in parts,
        "dueling": "dueling" in parts,
        "n_step": 1 if "n-step" not in parts else base.replay.n_step if base.replay.n_step > 1 else N_STEP,
        "loss": "c51" if "c51" in parts else "huber",
        "noisy": "noisy" in parts,
    }


def agent_label(settings: TrainSettings) -> str:
    """DQN, DQN+C51, DQN+Double+NStep, Rainbow, Rainbow-NoNoisy: the agent, with what it has more or less."""
    parts = parts_of(settings)
    if len(parts) >= len(PARTS) - 1:
        return "Rainbow" + "".join(f"-No{TITLES[part]}" for part in PARTS if part not in parts)
    return "+".join(["DQN", *(TITLES[part] for part in PARTS if part in parts)])


def run_label(settings: TrainSettings) -> str:
    """Agent and replay, such as Rainbow_PSER_MaxPrio_MAX; the agent of the game's own preset goes without saying."""
    usual = preset_settings(default_preset(settings.game.env), settings.game.env)
    if parts_of(settings) == parts_of(usual):
        return settings.replay.label
    return f"{agent_label(settings)}_{settings.replay.label}"
