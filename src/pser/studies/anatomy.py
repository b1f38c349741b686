"""What are the priorities made of, on the paper's own ground? Atari with the paper's settings, shortened."""

from pser.studies.arms import PER, PSER
from pser.studies.study import Game, Study

STUDY = Study(
    name="anatomy",
    question="What are PSER's priorities made of on Atari with the paper's settings?",
    arms=(PSER, PER),
    games=(Game(env="atari:Breakout"), Game(env="atari:Pong"), Game(env="atari:Seaquest")),
    seeds=1,
    preset="paper",
    settings={
        "capacity": 250_000,  # as many steps as a run has: nothing is overwritten, and it fits into memory
        "warmup_steps": 20_000,
        "epsilon_decay_steps": 100_000,
        "target_period_steps": 4_000,
        "budget_frames": 1_000_000,
        "log_period_frames": 20_000,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 200_000,
        "tensorboard": False,
    },
    stopping="after one seed a game: it describes the priorities, and compares no scores",
    core_hours=6,
)
