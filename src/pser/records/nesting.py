"""Nested settings and rows of a record on one level."""

from collections.abc import Mapping
from typing import Any


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value by its names from outside in, `group.name`."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
