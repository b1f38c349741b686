"""If Rainbow is not above DQN: which of its parts is to blame?"""

from typing import Any

from pser.learner.family import PARTS, switches
from pser.learner.presets import RAINBOW_ON_MINATAR, preset_settings
from pser.studies.minatar import FAST
from pser.studies.study import Arm, Contrast, Game, Study

REPLAY_AND_TUNING: dict[str, Any] = {"replay": "per", **RAINBOW_ON_MINATAR}


def agent(name: str) -> dict[str, Any]:
    """The settings of one of Rainbow's kin, all else as in Rainbow."""
    base = preset_settings("rainbow-minatar", "minatar:breakout")  # the switches are the same on every game
    return {**REPLAY_AND_TUNING, **switches(name, base)}


STUDY = Study(
    name="rainbow-parts",
    question="Which part of Rainbow helps or hurts on MinAtar?",
    arms=(
        Arm(name="rainbow", about="Rainbow, PER", settings=agent("rainbow")),
        *(
            Arm(name=f"no-{part}", about=f"Rainbow without {part}", settings=agent(f"rainbow-no-{part}"))
            for part in PARTS
        ),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=FAST,
    contrasts=tuple(
        Contrast(arm=f"no-{part}", against="rainbow", asks=f"Is Rainbow better without {part}?")
        for part in PARTS
    ),
    only_if="`rainbow` shows no gain over DQN",
    stopping="after 3 seeds",
    core_hours=4,
)
