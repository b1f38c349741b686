"""Fresh seeds: is PSER with CurrentTD better than PER, and is it decay that makes it so?

Declared when `insertion` was whole: the first was shown there, but by runs of which some had made one ask; the second
was not (probability 0.71, p = 0.051 before correction). No run of this study is shared with another.
"""

from dataclasses import replace

from pser.studies import arms
from pser.studies.advice import Advice
from pser.studies.insertion import DECAY_WITH_CURRENTTD, PSER_WITH_CURRENTTD
from pser.studies.minatar import STUDY as MINATAR
from pser.studies.study import Study

STUDY = Study(
    name="confirm",
    question="Do fresh seeds confirm PSER with CurrentTD, and that decay has a part in it?",
    arms=(arms.PER, arms.PER_ETA_TD, arms.PSER_TD),
    games=tuple(replace(game, seeds=None) for game in MINATAR.games),
    seeds=8,
    first_seed=100,
    settings=MINATAR.settings,
    contrasts=(
        replace(
            PSER_WITH_CURRENTTD,
            advice=Advice(
                if_yes="Take PSER with CurrentTD before PER: `pser.PSER()`, where each new transition enters with its "
                "own TD error. It costs a forward pass a step.",
                if_reverse="Take PER before PSER with CurrentTD.",
                if_level="Of PSER with CurrentTD and PER take `pser.PER()`, the simpler.",
            ),
        ),
        replace(
            DECAY_WITH_CURRENTTD,
            advice=Advice(
                if_yes="With CurrentTD and η leave decay on: it has a part of its own in the gain.",
                if_reverse="With CurrentTD and η turn decay off: `window=0`.",
                if_level="With CurrentTD and η decay is not needed: `window=0` is the simpler.",
            ),
        ),
    ),
    stopping="after 8 seeds of all arms on all games: so many show a probability of 0.70, what `insertion` found for "
    "decay; its answers count when it is whole",
    core_hours=5,
)
