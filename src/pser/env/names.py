"""Names, of games above all: found whatever their case and separators, and the nearest ones where there is none."""

import difflib
from collections.abc import Iterable

from pser.errors import PserError

FEW_NAMES = 12
"""An error lists up to this many names."""


def no_such(what: str, wanted: str, known: Iterable[str]) -> PserError:
    """The error for an unknown name, with the nearest known ones."""
    names = list(known)
    folded = {_fold(name): name for name in names}
    near = [folded[name] for name in difflib.get_close_matches(_fold(wanted), folded, n=3, cutoff=0.5)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif len(names) <= FEW_NAMES:
        hint = f"choose one of {', '.join(names)}"
    else:
        hint = f"choose one of the {len(names)}, such as {', '.join(names[:3])}"
    return PserError(f"there is no {what} {wanted!r}: {hint}")


def find_name(wanted: str, known: Iterable[str]) -> str | None:
    """The known name that equals `wanted` but for case and separators (SpaceInvaders, space_invaders)."""
    return next((name for name in known if _fold(name) == _fold(wanted)), None)


def _fold(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
