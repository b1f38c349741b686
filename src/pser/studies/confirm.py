"""Fresh seeds: is PSER with CurrentTD better than PER, and is it decay that makes it so?

Declared when `insertion` was whole: the first was shown there, but by runs of which some had made one ask; the second
was not (probability 0.71, p = 0.051 before correction). No run of this study is shared with another.
"""

from dataclasses import replace

from pser.studies import arms
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
    contrasts=(PSER_WITH_CURRENTTD, DECAY_WITH_CURRENTTD),
    stopping="after 8 seeds of all arms on all games: so many show a probability of 0.70, what `insertion` found for "
    "decay; its answers count when it is whole",
    core_hours=5,
)
