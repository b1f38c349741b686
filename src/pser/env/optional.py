"""Packages that only some games need."""

from importlib import import_module
from typing import Any

from pser.errors import PserError


def need(module: str, what: str, install: str) -> Any:
    """Import an optional dependency, or say in one line how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(module, what, install) from error


def missing(module: str, what: str, install: str) -> PserError:
    """The error for an optional dependency that is not installed."""
    return PserError(f"{what} need {module}, which is not installed: pip install {install}")
