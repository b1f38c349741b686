"""What to take, from what was compared: a comparison on which a choice hangs says what follows, however it goes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pser.studies.results import Tested


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to take after a comparison, in a sentence."""

    if_yes: str
    if_reverse: str
    """If the other arm is ahead."""
    if_level: str
    """If no difference is shown."""

    def after(self, verdict: str) -> str:
        """What to take after this verdict; empty as long as the runs are too few to tell."""
        told = {"higher": self.if_yes, "lower": self.if_reverse, "no difference shown": self.if_level}
        return told.get(verdict, "")


def what_to_take(tested: Iterable["Tested"]) -> str:
    """A line a comparison that has an answer: those that are shown first, then what is best without."""
    shown: list[str] = []
    level: list[str] = []
    for one in tested:
        if one.contrast.advice is not None and (advice := one.contrast.advice.after(one.verdict)):
            (shown if one.shown else level).append(f"- *{one.contrast.asks}* {_numbers(one)}. {advice}")
    groups = ((IF_SHOWN, shown), (IF_LEVEL, level))
    return "\n\n".join("\n".join((title, "", *lines)) for title, lines in groups if lines)


def _numbers(tested: "Tested") -> str:
    """What was found, and where nothing is shown what would have been."""
    found, least = tested.probability.value, tested.shown_from
    if tested.shown or least is None:
        return f"{found:.2f}"
    return f"{found:.2f}, would be shown at {least if found >= 0.5 else 1 - least:.2f}"


IF_SHOWN = "What to take, by what these runs show (with the probability of a higher score):"
IF_LEVEL = "And where they show no difference:"
