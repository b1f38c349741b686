"""The errors a user can cause: each message gives the rule, the value and the remedy."""

from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class PserError(ValueError):
    """A rule of the library was broken by its input; nothing was changed."""


class DamagedFileError(PserError):
    """A saved file is incomplete or altered; nothing was loaded from it."""


class LostProcessError(PserError):
    """A process was lost again and again; what it worked on may be whole."""


def require(holds: bool, rule: str, value: object, remedy: str) -> None:
    """Raise unless the rule holds for the value."""
    if not holds:
        raise PserError(f"{rule}, got {value!r}: {remedy}")


def is_real(value: object) -> bool:
    """Is it a plain real number (NumPy's included), and not a bool?"""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Is it a whole number (NumPy's included), and not a bool?"""
    return isinstance(value, Integral) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """NumPy's numbers, truth values and text as Python's own; anything else as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, np.bool_):
        return bool(value)
    return str(value) if isinstance(value, str) else value


def make_plain(settings: "DataclassInstance") -> None:
    """Every field of a frozen dataclass becomes plain Python: what can be made can be saved."""
    for field in fields(settings):
        object.__setattr__(settings, field.name, plain(getattr(settings, field.name)))


def require_flag(value: object, name: str, remedy: str) -> None:
    """Raise unless the value is True or False."""
    require(isinstance(value, bool), f"{name} must be True or False", value, remedy)
