"""Is it luck? The one point of `check` that lies off the published curve, with fresh seeds."""

from pser.studies.arms import PER_LOSS
from pser.studies.check import STUDY as CHECK
from pser.studies.check import tell
from pser.studies.study import Game, Study

STUDY = Study(
    name="check-again",
    question="Does the one point of `check` beyond two standard errors lie there with fresh seeds?",
    arms=(PER_LOSS,),
    games=(Game(env="minatar:asterix"),),
    seeds=3,
    first_seed=CHECK.seeds,
    settings=CHECK.settings,
    stopping="after 3 seeds that `check` has not; the point was luck if they lie within two standard errors of the "
    "published one",
    core_hours=0.5,
    tell=tell,
)
