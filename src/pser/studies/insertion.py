"""CurrentTD, η or decay: what makes PSER with CurrentTD? The controls that `minatar` lacks.

Declared when each arm of `minatar` had one seed, where PSER with CurrentTD was ahead of PSER with MaxPrio on all five
games, and of PER too; its runs and PER's are taken from there.
"""

from pser.studies import arms
from pser.studies.minatar import STUDY as MINATAR
from pser.studies.study import Contrast, Study

PSER_WITH_CURRENTTD = Contrast(
    arm="pser-currenttd",
    against="per",
    asks="Is PSER with CurrentTD better than PER?",
)
DECAY_WITH_CURRENTTD = Contrast(
    arm="pser-currenttd",
    against="per-eta-currenttd",
    asks="Does decay add anything to CurrentTD with η?",
)
STUDY = Study(
    name="insertion",
    question="Is it decay that makes PSER with CurrentTD, or CurrentTD alone?",
    arms=(arms.PER, arms.PER_TD, arms.PER_ETA_TD, arms.PSER_TD),
    games=MINATAR.games,
    seeds=3,
    settings=MINATAR.settings,
    contrasts=(
        DECAY_WITH_CURRENTTD,
        Contrast(arm="per-eta-currenttd", against="per-currenttd", asks="Does η add anything to CurrentTD?"),
        Contrast(arm="per-currenttd", against="per", asks="Does CurrentTD alone help PER?"),
        PSER_WITH_CURRENTTD,
    ),
    stopping="after 3 seeds (5 on Freeway); declared when `minatar` had one seed of every arm, and `pser-currenttd` "
    "was ahead there",
    core_hours=2,
    seen_seeds=1,
)
