"""If Rainbow is not above DQN: which of its parts is to blame?"""

from typing import Any

from pser.studies.minatar import BASE
from pser.studies.rainbow import RAINBOW
from pser.studies.study import Arm, Contrast, Game, Study

PER: dict[str, Any] = {"replay": "per", **RAINBOW}
WITHOUT: dict[str, dict[str, Any]] = {
    "double": {"double_q": False},
    "dueling": {"dueling": False},
    "n-step": {"n_step": 1},
    "c51": {"loss": "huber"},
    "noisy": {"noisy": False},
}
"""Rainbow's ablation: a part → the setting that takes it out."""

STUDY = Study(
    name="rainbow-parts",
    question="Which part of Rainbow helps or hurts on MinAtar?",
    arms=(
        Arm(name="rainbow", about="Rainbow, PER", settings=PER),
        *(
            Arm(name=f"no-{part}", about=f"Rainbow without {part}", settings={**PER, **change})
            for part, change in WITHOUT.items()
        ),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=BASE,
    contrasts=tuple(
        Contrast(arm=f"no-{part}", against="rainbow", asks=f"Is Rainbow better without {part}?")
        for part in WITHOUT
    ),
    stopping="run only if `rainbow` shows no gain over DQN; then after 3 seeds",
    core_hours=4,
)
