"""How much does it cost to correct the bias in full within a short run? β to 1 beside β near 0.4.

One test over all three methods, declared so before the first run of its own: method by method three seeds on two games
would show a probability of 0.96 at best.
"""

from pser.studies import arms
from pser.studies.minatar import BASE
from pser.studies.study import Arm, Contrast, Game, Study

METHODS = (arms.PER, arms.PER_LOSS, arms.PSER)


def in_full(arm: Arm) -> Arm:
    """The arm with β from 0.4 to 1 over its run."""
    return Arm(
        name=f"{arm.name}-beta1",
        about=f"{arm.about}; β comes to 1",
        settings={**arm.settings, "beta": 0.4, "beta_end": 1.0},
    )


STUDY = Study(
    name="beta",
    question="Does it hurt prioritized replay that β comes to 1 within the run?",
    arms=(*METHODS, *(in_full(arm) for arm in METHODS)),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=BASE,
    contrasts=(
        Contrast(
            arm="β near 0.4",
            against="β to 1",
            asks="Is prioritized replay better if β stays near 0.4?",
            pairs=tuple((arm.name, f"{arm.name}-beta1") for arm in METHODS),
        ),
    ),
    stopping="after 3 seeds",
    core_hours=1.5,
)
