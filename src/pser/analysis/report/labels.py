"""What a label is made of (an agent and a replay strategy), and how it looks in every chart."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from pser.analysis.colours import PALETTE

PLAIN_AGENT = "DQN"
"""The agent of runs that nowhere name theirs."""
USUAL_AGENT = "usual agent"
"""A label that names no agent means the usual one of each game, which may differ from game to game."""
OWN_COLOURS = {"PSER_MaxPrio_MAX": PALETTE[0], "PER_MaxPrio": PALETTE[1], "Uniform": PALETTE[2]}
"""PSER orange and PER blue as in the paper, uniform green."""
DASHES = ((), (6.0, 2.5), (1.5, 2.0), (6.0, 2.0, 1.5, 2.0))
"""Solid, dashed, dotted, dash-dotted; in units of the line's width."""


@dataclass(frozen=True)
class Label:
    """Runs of one agent and one replay strategy."""

    name: str
    agent: str
    strategy: str
    """The replay strategy with its settings, as in `PSER_MaxPrio_MAX`."""
    replay: str
    """pser, per, uniform or another rule."""


@dataclass(frozen=True)
class Style:
    """Colour and dashes of a label's curve."""

    colour: str
    dash: tuple[float, ...]


def agent_in(label: str) -> str:
    """The agent a label begins with: `Rainbow` of `Rainbow_PSER_MaxPrio_MAX`; empty if it names none."""
    found = re.match(r"(.+?)_(?=(?:PSER|PER|Uniform)(?:_|\b))", label)
    return found.group(1) if found else ""


def split_label(name: str, agents: Set[str], replay: str) -> Label:
    """A label and its parts; `agents` are those that its runs name."""
    named = sorted(agent for agent in agents if agent)
    agent = named[0] if len(named) == 1 else USUAL_AGENT if named else PLAIN_AGENT
    return Label(name, agent, name.removeprefix(f"{agent}_"), replay)


def styles(labels: Sequence[Label]) -> dict[str, Style]:
    """One look a label: the colour tells strategies apart, the dashes agents.

    With a single strategy the colour is free to tell the agents apart. Where colours run out they begin again
    with other dashes.
    """
    agents = list(dict.fromkeys(label.agent for label in labels))
    strategies = list(dict.fromkeys(label.strategy for label in labels))
    if len(strategies) == 1 and len(agents) > 1:
        return {label.name: _cycled(agents.index(label.agent), PALETTE) for label in labels}
    free = [colour for colour in PALETTE if colour not in {OWN_COLOURS.get(name) for name in strategies}]
    others = [name for name in strategies if name not in OWN_COLOURS]
    looks = {}
    for label in labels:
        own = OWN_COLOURS.get(label.strategy)
        plain = Style(own, ()) if own else _cycled(others.index(label.strategy), free)
        turn = (DASHES.index(plain.dash) + agents.index(label.agent)) % len(DASHES)
        looks[label.name] = Style(plain.colour, DASHES[turn])
    return looks


def _cycled(place: int, colours: Sequence[str]) -> Style:
    return Style(colours[place % len(colours)], DASHES[place // len(colours) % len(DASHES)])
