"""All settings of a run in a few lines."""

import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

from pser.cli.train_flags import as_written
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import to_json

WIDTH = 100
"""As wide as text gets."""


def text_width() -> int:
    """Columns for text: those of the terminal, if it is not wider than is good to read."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)


def settings_lines(settings: TrainSettings, width: int = WIDTH) -> Iterable[str]:
    """One paragraph a group: its name, then each setting with its value, as one writes it on the command line."""
    groups = to_json(settings)
    indent = max(map(len, groups)) + 2
    for group, values in groups.items():
        pairs = "   ".join(
            f"{name.replace('_', '-')} {value}".replace(" ", "\0") for name, value in _flat(values)
        )
        for number, line in enumerate(textwrap.wrap(pairs, width - indent, break_on_hyphens=False)):
            yield f"{'' if number else group:<{indent}}{line}".replace("\0", " ")


def _flat(values: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value)
        else:
            yield name, as_written(tuple(value) if isinstance(value, list) else value)
