"""Which W, ρ and η? The paper's coordinate descent again, with a random search of equal budget beside it."""

from pser.studies.minatar import BASE
from pser.studies.study import Game
from pser.studies.tuning import PAPER_VALUES, Tuning, all_choices, arm_of, tell

STUDY = Tuning(
    name="tune",
    question="Which W, ρ and η does tuning choose, and how sure is the choice?",
    arms=tuple(arm_of(choice) for choice in all_choices(PAPER_VALUES)),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=2,
    settings=BASE,
    stopping="when both searches have tried their 8 settings with 2 seeds",
    core_hours=3,
    tell=tell,
)
