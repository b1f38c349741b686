"""The flags of `pser train` and `pser sweep`, made from the settings: one per field, empty unless given."""

import ast
import inspect
import textwrap
from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, Literal, get_type_hints

import tyro

from pser.learner.settings import GROUPS

FROM_PRESET = "(default: the preset's)"
ALIASES = {"budget_frames": ("--frames",), "priority_eps": ("--eps",)}
ON_OFF = Literal["on", "off"]


def field_docs(cls: type) -> dict[str, str]:
    """The docstring under each field of a dataclass."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    docs = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            assert isinstance(following, ast.Expr)
            assert isinstance(following.value, ast.Constant)
            docs[statement.target.id] = inspect.cleandoc(str(following.value.value))
    return docs


def flags_class(name: str, own: type, *, leave_out: frozenset[str]) -> type[Any]:
    """A frozen dataclass with the fields of `own`, then one optional flag per field of the settings."""
    flags: list[tuple[str, Any, Any]] = []
    for group in GROUPS.values():
        docs, hints = field_docs(group), get_type_hints(group)
        for item in fields(group):
            if item.name not in leave_out:
                flags.append(
                    (item.name, _flag(item.name, hints[item.name], docs[item.name]), field(default=None))
                )
    return make_dataclass(
        name, flags, bases=(own,), frozen=True, kw_only=True, namespace={"__doc__": own.__doc__}
    )


def given_flags(flags: Any, leave_out: frozenset[str]) -> dict[str, Any]:
    """Field → value, for the flags that were given on the command line."""
    values: dict[str, Any] = {}
    for cls in GROUPS.values():
        for item in fields(cls):
            value = None if item.name in leave_out else getattr(flags, item.name)
            if value is not None:
                values[item.name] = value == "on" if item.type is bool else value
    if "eval_episodes" in values:
        values.setdefault("eval_frames", 0)  # whoever names a number of episodes means to count episodes
    return values


def _flag(name: str, hint: Any, doc: str) -> Any:
    kind = ON_OFF if hint is bool else hint
    return Annotated[
        kind | None,
        tyro.conf.arg(
            help=doc, help_behavior_hint=FROM_PRESET, metavar=_metavar(hint), aliases=ALIASES.get(name)
        ),
    ]


def _metavar(hint: Any) -> str | None:
    if hint is bool:
        return "on|off"
    if hint in (int, float, str):
        return str(hint.__name__).upper()
    if hint == tuple[int, ...]:
        return "INT [INT ...]"
    choices = [str(value) for arg in hint.__args__ for value in getattr(arg, "__args__", (arg,))]
    return "|".join("INT" if choice == "<class 'int'>" else choice for choice in choices)
