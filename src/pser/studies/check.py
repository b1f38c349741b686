"""Are we right? The trainer beside published learning curves of the same set-up."""

from pser.studies.arms import PER_LOSS, UNIFORM
from pser.studies.study import Game, Study

STUDY = Study(
    name="check",
    question="Are our learning curves those that others published for the same set-up?",
    arms=(UNIFORM, PER_LOSS),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway"), Game(env="minatar:asterix")),
    seeds=3,
    settings={
        "alpha": 0.6,
        "beta": 0.4,
        "beta_end": 0.46,  # 0.4 → 1 over 5M frames, of which these runs have a tenth
        "budget_frames": 500_000,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 50_000,
        "tensorboard": False,
    },
    stopping="after 3 seeds; our mean at 250,000 and 500,000 frames must lie within two standard errors (of the "
    "difference) of the published one, or an experiment must explain why not",
    core_hours=4,
)
