"""The colours of every figure and page."""

PALETTE = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#6f4fa0", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (after Okabe and Ito 2008)."""

DARK_PALETTE = ("#ff8a3d", "#5ab4f2", "#35c99a", "#eaa4cb", "#e0b040", "#8fd3ff", "#b39ddb", "#a8a8a8")
"""The same hues, lighter, for a dark page."""

BLACK, RULE, NOTE, GRID = "#000000", "#444444", "#595959", "#d9d9d9"
"""What is not a label's: known truths and printed bounds, lines at zero, small print, the grid."""
