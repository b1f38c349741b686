"""Markdown as every page of results is written: tables, and text whose stars and bars stay what they are."""

import re
from collections.abc import Collection, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Collection[int] = ()) -> str:
    """A table without a newline at its end; the columns numbered in `numeric` are aligned to the right."""
    rule = ["---:" if column in numeric else "---" for column in range(len(header))]
    lines = (_cells(header), rule, *map(_cells, rows))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def escape(text: str) -> str:
    """`text` with its stars and angle brackets as themselves: Q* begins no emphasis; PER_MaxPrio never does."""
    return re.sub(r"([*`]|(?<!\w)_|_(?!\w))", r"\\\1", text).replace("<", "&lt;")


def _cells(line: Sequence[str]) -> list[str]:
    """A bar inside a cell would end it."""
    return [re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line]
