"""Command lines into settings, by tyro: numbers as people write them, and each mistake in one line."""

import contextlib
import io
import re
import sys
import types
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Union, get_args, get_origin

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from pser.errors import PserError, require

LARGEST_WHOLE = 2**63 - 1
REGISTRY = ConstructorRegistry()
UNSET = tyro.conf.arg(help_behavior_hint="")
"""For options whose text says itself what happens without them."""


def parse(make: Callable[..., Any], prog: str, description: str, args: Sequence[str]) -> Any:
    """What `make` gives for these arguments; a PserError of one line where tyro would draw a box of many."""
    for word in args:
        require("\0" not in word, "no word of a command line holds a NUL character", word, "leave it out")
    if {"-h", "--help"} & set(args):
        args = ["--help"]  # tyro's help leaves out what stands before it
    drawn = io.StringIO()
    config = (tyro.conf.OmitArgPrefixes,)
    try:
        with contextlib.redirect_stderr(drawn):
            settings = tyro.cli(
                make, prog=prog, description=description, args=args, config=config, registry=REGISTRY
            )
    except SystemExit as stop:
        if not stop.code:  # --help
            raise
        raise PserError(f"{one_line(drawn.getvalue())} ({prog} --help explains each option)") from None
    sys.stderr.write(drawn.getvalue())
    return settings


def one_line(box: str) -> str:
    """What one of tyro's boxes says: its first section, and the option it guesses was meant.

    A box is a title, then sections between rules; its frame, rules and colours depend on the terminal.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯ ") for line in plain.splitlines()]
    framed = plain.lstrip().startswith("╭")
    text = " ".join("\n" if re.fullmatch("[─-]{3,}", line) else line for line in lines[1 if framed else 2 :])
    said, *rest = re.sub(r"[^\S\n]+", " ", text).split("\n")
    guess = re.search(r"Perhaps you meant: (--[\w-]+)", "".join(rest))
    said = said.strip().rstrip(".")
    return f"{said}: did you mean {guess[1]}?" if guess else said


def whole_number(text: str) -> int:
    """1000000, 1_000_000 and 1e6 are the same number."""
    try:
        number = Decimal(text.replace("_", "")) if len(text) < 64 else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if (
        not number.is_finite()
        or number.adjusted() > 18
        or number != int(number)
        or abs(number) > LARGEST_WHOLE
    ):
        raise ValueError(f"it is a whole number, such as 1000000 or 1e6, got {shortened(text)}")
    return int(number)


def as_flag(name: str) -> str:
    """A setting's flag."""
    return "--" + name.replace("_", "-")


def shortened(text: str) -> str:
    """A word of the command line as an error shows it."""
    return repr(text) if len(text) <= 40 else f"{text[:37]!r}…"


@REGISTRY.primitive_rule
def _whole(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


@REGISTRY.primitive_rule
def _choice(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[str] | None:
    """A choice of words, shown as a|b|c."""
    if get_origin(info.type) is not Literal:
        return None
    words = get_args(info.type)

    def read(given: list[str]) -> str:
        if given[0] not in words:
            raise ValueError(f"it is one of {', '.join(words)}, got {shortened(given[0])}")
        return given[0]

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="|".join(words),
        instance_from_str=read,
        is_instance=lambda value: value in words,
        str_from_instance=lambda value: [value],
    )


@REGISTRY.primitive_rule
def _one_of_several(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """A value of one of several types; None is what a flag that is not given holds, and is never written."""
    if get_origin(info.type) not in (Union, types.UnionType):
        return None
    kinds = [kind for kind in get_args(info.type) if kind is not types.NoneType]
    found = [
        ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, info.markers)) for kind in kinds
    ]
    specs = [spec for spec in found if isinstance(spec, PrimitiveConstructorSpec)]
    if len(specs) < len(kinds) or any(spec.nargs != specs[0].nargs for spec in specs):
        return None

    def read(words: list[str]) -> Any:
        reasons = []
        for spec in specs:
            try:
                return spec.instance_from_str(words)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(", or ".join(reasons))

    def write(value: Any) -> list[str]:
        fitting = (spec for spec in specs if spec.is_instance(value))
        return next((spec.str_from_instance(value) for spec in fitting), ["none"])

    return PrimitiveConstructorSpec(
        nargs=specs[0].nargs,
        metavar="|".join(spec.metavar for spec in specs),
        instance_from_str=read,
        is_instance=lambda value: value is None or any(spec.is_instance(value) for spec in specs),
        str_from_instance=write,
    )
