"""Settings as JSON values and back: what the manifest holds, and what repeats a run."""

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pser.errors import PserError, require
from pser.learner.settings import GROUPS, STRATEGY_FIELDS, ReplaySettings, TrainSettings
from pser.learner.strategies import STRATEGIES, flatten, unflatten


def to_json(settings: TrainSettings) -> dict[str, Any]:
    """The settings as nested plain values, as the manifest holds them."""
    plain = asdict(settings)
    plain["agent"]["hidden"] = list(settings.agent.hidden)
    replay = plain["replay"]
    del replay["prioritization"]
    plain["replay"] = {"replay": settings.replay.replay, **replay, **flatten(settings.replay.prioritization)}
    return plain


def from_json(plain: Mapping[str, Any]) -> TrainSettings:
    """The settings that `to_json` wrote; an unknown, missing or mistyped entry is an error."""
    require(isinstance(plain, Mapping), "settings must be an object", plain, "repair the file")
    unknown = set(plain) - set(GROUPS)
    if unknown:
        raise PserError(f"unknown settings group {sorted(unknown)}: written by another version of pser?")
    return TrainSettings(
        **{group: _group_from_json(cls, plain.get(group, {})) for group, cls in GROUPS.items()}
    )


def _group_from_json(cls: type, plain: Any) -> Any:
    assert is_dataclass(cls)
    rule = f"settings of {cls.__name__} must be an object"
    require(isinstance(plain, Mapping), rule, plain, "repair the file")
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    if cls is ReplaySettings:
        plain, values["prioritization"] = _strategy_from_json(plain)
    for name, value in plain.items():
        if name not in hints or name == "prioritization":
            raise PserError(f"unknown setting {name!r}: written by another version of pser?")
        values[name] = _checked(name, value, hints[name])
    for f in fields(cls):
        if f.name not in values and f.default is MISSING:
            raise PserError(f"the setting {f.name!r} is missing: repair the file")
    return cls(**values)


def _strategy_from_json(plain: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """What is left of the replay settings, and the strategy with its own.

    Earlier versions wrote the settings of all strategies; those of others than the one named say nothing.
    """
    strategy = _checked("replay", plain.get("replay", "pser"), Literal[tuple(STRATEGIES)])
    flat = {
        name: _checked(name, value, STRATEGY_FIELDS[name])
        for name, value in plain.items()
        if name in STRATEGY_FIELDS
    }
    rest = {name: value for name, value in plain.items() if name not in flat and name != "replay"}
    return rest, unflatten(strategy, flat)


def _checked(name: str, value: Any, hint: Any) -> Any:
    """`value` as the annotated type, or an error: a manifest may have been edited by hand."""
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(_checked(name, item, get_args(hint)[0]) for item in value)
    if get_origin(hint) in (Union, types.UnionType):
        for option in get_args(hint):
            try:
                return _checked(name, value, option)
            except PserError:
                continue
    elif get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise PserError(f"the setting {name} cannot be {value!r}: see pser train --help")
