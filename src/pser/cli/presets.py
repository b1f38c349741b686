"""Show the settings that training starts from.

$ pser presets
$ pser presets minatar
"""

import inspect
import textwrap
from dataclasses import dataclass
from typing import Annotated

import tyro

from pser.cli.settings_text import settings_lines, text_width
from pser.cli.train_flags import PRESET
from pser.learner.presets import PRESETS, preset_settings

GAMES = {
    **dict.fromkeys(("minatar", "minatar-fast", "rainbow-minatar"), "minatar:breakout"),
    "classic": "gym:CartPole-v1",
}
"""A game for which a preset is shown; the others are for Atari."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which preset, and for which game."""

    name: Annotated[str | None, tyro.conf.Positional, PRESET] = None
    """The preset to show in full; without it, all are listed."""
    game: Annotated[str | None, tyro.conf.arg(metavar="GAME", help_behavior_hint="")] = None
    """The game: atari:NAME, minatar:NAME or gym:ID; by default one that the preset is meant for."""


def run(settings: Settings) -> None:
    """List the presets, or show one as the flags of `pser train`."""
    if settings.name is None:
        width = max(map(len, PRESETS))
        for name, make in PRESETS.items():
            first_line = (inspect.getdoc(make) or "").partition("\n")[0]
            for number, line in enumerate(textwrap.wrap(first_line, text_width() - width - 4)):
                print(f"  {'' if number else name:<{width}}  {line}")
        closing = "pser presets NAME shows one in full; a flag of pser train changes one of its settings"
        print("\n" + textwrap.fill(closing, text_width()))
        return
    game = settings.game or GAMES.get(settings.name, "atari:Pong")
    chosen = preset_settings(settings.name, game)
    print(f"{settings.name}, for {game}")
    for line in settings_lines(chosen, text_width()):
        print(line)
