"""A colour for each label, the same in every figure and on the page."""

from collections.abc import Sequence

PALETTE = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#6f4fa0", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (after Okabe and Ito 2008)."""

DARK_PALETTE = ("#ff8a3d", "#5ab4f2", "#35c99a", "#eaa4cb", "#e0b040", "#8fd3ff", "#b39ddb", "#a8a8a8")
"""The same hues, lighter, for a dark page."""


def colour_of(label: str, labels: Sequence[str]) -> str:
    """A label's colour: PSER orange and PER blue as in the paper, uniform green, variants the others."""
    fixed = {"PSER_MaxPrio_MAX": PALETTE[0], "PER_MaxPrio": PALETTE[1], "Uniform": PALETTE[2]}
    if label in fixed:
        return fixed[label]
    free = [colour for colour in PALETTE if colour not in {fixed.get(name) for name in labels}]
    others = sorted(name for name in labels if name not in fixed)
    return free[others.index(label) % len(free)]
