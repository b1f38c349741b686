"""The flags of `pser train` and `pser sweep`, made from the settings: one per field, empty unless given."""

from collections.abc import Sequence
from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, Literal, get_type_hints

import docstring_parser
import tyro

from pser.cli.parsing import as_flag, parse
from pser.env.make import FAMILIES, OWNERS, unowned
from pser.errors import PserError
from pser.learner.family import AGENTS
from pser.learner.presets import PRESETS, default_preset, preset_settings
from pser.learner.settings import GROUPS, STRATEGY_FIELDS, TrainSettings
from pser.learner.strategies import RENAMED, STRATEGIES, WINDOW, flat_names, flatten

ALIASES = {"budget_frames": ("--frames",), "priority_eps": ("--eps",)}
ON_OFF = Literal["on", "off"]
WINDOW_DOCS = {
    "window": "How many preceding transitions share; derived = until 1% is left; adaptive = down to a floor.",
    "window_floor": "Adaptive window: decay goes on while the decayed priority exceeds this.",
    "window_limit": "Adaptive window: decay never reaches further back than this.",
}
"""A window is one field of its strategy, and three flags."""
PRESET = tyro.conf.arg(metavar="NAME", help_behavior_hint=f"(one of {', '.join(PRESETS)})")
"""How --preset is shown: the names are too many to stand beside the flag."""
AGENT_NAMES = f"(one of {', '.join(AGENTS)})"
"""Shown after what --agent means."""
TITLES = {group: f"{group}_" for group in GROUPS}
"""The field of the form that holds a group's flags: no setting is named like it."""


def flags_class(name: str, own: type, *, leave_out: frozenset[str]) -> type[Any]:
    """A frozen dataclass with the fields of `own`, then one optional flag per field of the settings."""
    flags = [(flag, _kind(hint) | None, None) for group in GROUPS for flag, hint in _hints(group, leave_out)]
    return make_dataclass(
        name, flags, bases=(own,), frozen=True, kw_only=True, namespace={"__doc__": own.__doc__}
    )


def parse_flags(
    settings: type[Any], own: type, leave_out: frozenset[str], prog: str, about: str, args: Sequence[str]
) -> Any:
    """`settings` from a command line; the help shows the groups, and the values of the preset it speaks of."""
    preset, base = shown_preset(args)
    note = f"Settings not given are those of the preset, shown here for {preset}: pser presets lists all."
    form = parse(_form(own, leave_out, base), prog, f"{about}\n{note}", args)
    values = {item.name: getattr(form, item.name) for item in fields(own)}
    for group, title in TITLES.items():
        values |= {flag: getattr(getattr(form, title), flag) for flag, _ in _hints(group, leave_out)}
    return settings(**values)


def shown_preset(args: Sequence[str]) -> tuple[str, TrainSettings]:
    """The preset that a command line means, as far as one can tell, for its help; the paper's on Atari if not."""
    game = next((word for word in args if word.partition(":")[0] in FAMILIES), "atari:Pong")
    named = [args[i + 1] for i, word in enumerate(args[:-1]) if word == "--preset" and args[i + 1] in PRESETS]
    preset = named[0] if named else default_preset(game)
    return f"{preset} on {game}", preset_settings(preset, game)


def given_flags(flags: Any, leave_out: frozenset[str]) -> dict[str, Any]:
    """Field → value, for the flags that were given on the command line."""
    values: dict[str, Any] = {}
    for group in GROUPS:
        for flag, hint in _hints(group, leave_out):
            value = getattr(flags, flag)
            if value is not None:
                values[flag] = value == "on" if hint is bool else value
    if "eval_episodes" in values:
        values.setdefault("eval_frames", 0)  # whoever names a number of episodes means to count episodes
    return values


def refuse_unfit_preset(preset: str, train: TrainSettings, flags: dict[str, Any]) -> None:
    """Refuse what a preset, and nobody on the command line, sets although the game does not have it."""
    game, evaluation = train.game, train.evaluation
    values = {name: getattr(game, name) for name in OWNERS}
    if evaluation.eval_period_frames:
        values["eval_noop_max"] = evaluation.eval_noop_max
    found = [
        name
        for name, value in values.items()
        if name not in flags and unowned(game.env, {name.removeprefix("eval_"): value})
    ]
    if found:
        raise PserError(
            f"the preset {preset} sets {', '.join(found)}, which {game.env} does not have: "
            f"choose another, such as --preset {default_preset(game.env)}"
        )


def refuse_without_effect(train: TrainSettings, flags: dict[str, Any]) -> None:
    """Refuse options of other replay strategies than the run's, and those of a window that it does not have."""
    replay, rule = train.replay.replay, train.replay.prioritization
    others = {
        flag: [name for name in STRATEGIES if flag in flat_names(name)]
        for flag in flags
        if flag in STRATEGY_FIELDS and flag not in flat_names(replay)
    }
    named = ", ".join(f"{as_flag(flag)} (of {', '.join(names)})" for flag, names in others.items())
    if others:
        raise PserError(f"--replay {replay} has no use for options of others, got {named}: leave them out")
    unused = [as_flag(flag) for flag in flags if flag in WINDOW and flag not in flatten(rule)]
    if unused:
        raise PserError(
            f"only an adaptive window has a floor and a limit, got {', '.join(unused)}: add --window adaptive"
        )


def shorten_evaluation(train: TrainSettings, flags: dict[str, Any]) -> TrainSettings:
    """A run shorter than one evaluation period is not followed by a whole evaluation, unless that was asked for."""
    evaluation, budget = train.evaluation, train.run.budget_frames
    asked = {"eval_frames", "eval_episodes", "eval_period_frames"} & set(flags)
    if asked or budget >= evaluation.eval_period_frames:
        return train
    counted = "eval_frames" if evaluation.eval_frames else "eval_episodes"
    share = getattr(evaluation, counted) * budget // evaluation.eval_period_frames
    return train.override({counted: max(1, share)})


def as_written(value: Any) -> str:
    """A setting as one writes it on the command line."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(as_written, value))
    return f"{value:,}".replace(",", "_") if isinstance(value, int) else str(value)


def _form(own: type, leave_out: frozenset[str], base: TrainSettings) -> type[Any]:
    """What tyro reads: the fields of `own`, then one part for each group of the settings."""
    parts = []
    for group, title in TITLES.items():
        docs, values = _docs(GROUPS[group]), dict(vars(getattr(base, group)))
        if group == "replay":
            docs |= _strategy_docs()
            values |= {"replay": base.replay.replay, **flatten(base.replay.prioritization)}
        flags = [
            (flag, _flag(flag, hint, docs[flag], values.get(flag)), None)
            for flag, hint in _hints(group, leave_out)
        ]
        about = {"__doc__": GROUPS[group].__doc__}
        part = make_dataclass(title, flags, frozen=True, kw_only=True, namespace=about)
        parts.append((title, Annotated[part, tyro.conf.arg(name=group)], field(default_factory=part)))
    return make_dataclass(
        "Form", parts, bases=(own,), frozen=True, kw_only=True, namespace={"__doc__": own.__doc__}
    )


def _docs(cls: type) -> dict[str, str]:
    """The docstring under each field of a dataclass."""
    documented = docstring_parser.parse_from_object(cls)
    return {item.arg_name: " ".join((item.description or "").split()) for item in documented.params}


def _strategy_docs() -> dict[str, str]:
    """What the settings of the replay strategies mean; if not all prioritized ones have it, who does."""
    docs: dict[str, str] = {"replay": "The replay strategy."}
    owners: dict[str, list[str]] = {}
    for name, strategy in STRATEGIES.items():
        own = {RENAMED.get(field, field): doc for field, doc in _docs(strategy.settings).items()}
        for setting in flat_names(name):
            docs.setdefault(setting, WINDOW_DOCS.get(setting) or own[setting])
            owners.setdefault(setting, []).append(name)
    most = set(STRATEGIES) - {"uniform"}
    for setting, names in owners.items():
        if not most <= set(names):
            docs[setting] = f"{', '.join(name.upper() for name in names)}: {docs[setting]}"
    return docs


def _hints(group: str, leave_out: frozenset[str]) -> list[tuple[str, Any]]:
    """The settings of a group that are flags, with their types."""
    hints = get_type_hints(GROUPS[group])
    if group == "replay":  # the strategy, and the settings of each of them
        del hints["prioritization"]
        hints = {"replay": Literal[tuple(STRATEGIES)], **STRATEGY_FIELDS, **hints}
    return [(name, hint) for name, hint in hints.items() if name not in leave_out]


def _kind(hint: Any) -> Any:
    return ON_OFF if hint is bool else hint


def _flag(name: str, hint: Any, doc: str, value: Any) -> Any:
    shown = "" if value is None else f"(preset: {as_written(value)})"
    names = ALIASES.get(name)
    return Annotated[_kind(hint) | None, tyro.conf.arg(help=doc, help_behavior_hint=shown, aliases=names)]
