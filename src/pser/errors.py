"""The errors a user can cause: each message gives the rule, the value and the remedy."""

from numbers import Integral, Real


class PserError(ValueError):
    """A rule of the library was broken by its input; nothing was changed."""


class DamagedFileError(PserError):
    """A saved file is incomplete or altered; nothing was loaded from it."""


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
