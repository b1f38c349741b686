"""The replay strategies a run can name, and their settings as flat values: one list for flags and manifests.

A strategy's settings are the fields of its class, the memory's own `PSER`, `PER` and `Uniform` or another's. Its
line in `STRATEGIES` makes each of them a flag and an entry of the manifest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

import pser
from pser.errors import PserError, require
from pser.learner.kin.rules import BackwardUpdate, Introspective, ReaPER, RewardBackprop, Sequences
from pser.memory.prioritization import AdaptiveWindow

INITIAL = {"max": "MaxPrio", "td": "CurrentTD"}
"""How the paper's ablation calls the priorities of new transitions."""


@dataclass(frozen=True)
class Strategy:
    """A way to choose what is learned from."""

    settings: type
    """A frozen dataclass; its fields are the strategy's settings."""
    label: Callable[[Any, str], str]
    """Its name in tables and folders, given its settings and how new transitions enter."""
    replay: str = "pser.learner.replay:MemoryReplay"
    """The class that carries it out (replay.py says what is asked of it)."""


STRATEGIES: dict[str, Strategy] = {
    "pser": Strategy(pser.PSER, lambda rule, initial: f"PSER_{initial}_{rule.decay.upper()}"),
    "per": Strategy(pser.PER, lambda rule, initial: f"PER_{initial}"),
    "uniform": Strategy(pser.Uniform, lambda rule, initial: "Uniform"),
    "backprop": Strategy(
        RewardBackprop,
        lambda rule, initial: "RewardBackprop",
        "pser.learner.kin.reward_backprop:RewardBackpropReplay",
    ),
    "reaper": Strategy(ReaPER, lambda rule, initial: "ReaPER", "pser.learner.kin.reaper:ReaPERReplay"),
    "ebu": Strategy(
        BackwardUpdate,
        lambda rule, initial: "BackwardUpdate",
        "pser.learner.kin.backward_update:BackwardUpdateReplay",
    ),
    "ier": Strategy(
        Introspective,
        lambda rule, initial: "Introspective",
        "pser.learner.kin.introspective:IntrospectiveReplay",
    ),
    "sequences": Strategy(
        Sequences, lambda rule, initial: "Sequences", "pser.learner.kin.sequences:SequencesReplay"
    ),
}
"""Name of a strategy → what it is."""

RENAMED = {"eps": "priority_eps", "weights": "is_weights"}
"""Fields whose name alone would say too little among the settings of a whole run."""

WINDOW = {
    "window": int | Literal["derived", "adaptive"],
    "window_floor": float,
    "window_limit": int,
}
"""A window as flat settings: an `AdaptiveWindow` has two numbers of its own."""

FLOOR, LIMIT = 0.01, 100
"""The adaptive window's, if none are given."""


def name_of(rule: object) -> str:
    """The name of the strategy whose settings these are."""
    for name, strategy in STRATEGIES.items():
        if type(rule) is strategy.settings:
            return name
    raise PserError(f"{rule!r} is no replay strategy: use one of {', '.join(STRATEGIES)}")


def flat_names(strategy: str) -> dict[str, Any]:
    """The flat settings of a strategy and the types of their values."""
    cls = STRATEGIES[strategy].settings
    hints, names = get_type_hints(cls), dict[str, Any]()
    for item in fields(cls):
        if item.name == "window":
            names |= WINDOW
        else:
            names[RENAMED.get(item.name, item.name)] = hints[item.name]
    return names


def flatten(rule: Any) -> dict[str, Any]:
    """The settings of a strategy as flat plain values."""
    flat: dict[str, Any] = {}
    for item in fields(rule):
        value = getattr(rule, item.name)
        if item.name != "window":
            flat[RENAMED.get(item.name, item.name)] = value
        elif isinstance(value, AdaptiveWindow):
            flat |= {"window": "adaptive", "window_floor": value.floor, "window_limit": value.limit}
        else:
            flat["window"] = "derived" if value is None else value
    return flat


def unflatten(strategy: str, flat: Mapping[str, Any]) -> Any:
    """The settings of a strategy from flat values; those it does not have are left out."""
    cls, values = STRATEGIES[strategy].settings, dict[str, Any]()
    for item in fields(cls):
        name = RENAMED.get(item.name, item.name)
        if name in flat:
            values[item.name] = _window(flat) if name == "window" else flat[name]
    return cls(**values)


def changed(rule: Any, values: Mapping[str, Any]) -> Any:
    """The rule with other flat values, perhaps of another strategy: what the two share stays as it was.

    Values that the strategy does not have change nothing: a grid may hold several strategies.
    """
    strategy = values.get("replay", name_of(rule))
    require(strategy in STRATEGIES, "no such replay strategy", strategy, f"one of {', '.join(STRATEGIES)}")
    return unflatten(strategy, flatten(rule) | dict(values))


def _window(flat: Mapping[str, Any]) -> int | AdaptiveWindow | None:
    window: int | Literal["derived", "adaptive"] = flat["window"]
    if window == "adaptive":
        floor = flat.get("window_floor", FLOOR)
        require(floor > 0, "window_floor must be positive", floor, "raise it")
        return AdaptiveWindow(floor=floor, limit=flat.get("window_limit", LIMIT))
    return None if window == "derived" else window
