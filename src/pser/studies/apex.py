"""Does Ape-X on Ray learn what it learns in one process, and is it better with PSER than with PER?"""

from pser.learner.presets import LONGER_STEPS_ON_MINATAR
from pser.studies.study import Arm, Contrast, Game, Study

ON_RAY = {
    "name": "ray",
    "actors": 2,
    "envs_per_actor": 4,
    "shards": 1,
    "chunk_steps": 50,
    "synchronous": False,
}
"""As `pser train --engine ray --actors 2 --envs-per-actor 4` writes it into a manifest."""
PSER, PER = {"replay": "pser"}, {"replay": "per"}

STUDY = Study(
    name="apex",
    question="Does Ape-X on Ray learn as in one process, and is it better with PSER than with PER?",
    arms=(
        Arm(name="per", about="Ape-X with PER, in one process", settings=PER),
        Arm(name="pser", about="Ape-X with PSER, in one process", settings=PSER),
        Arm(name="per-ray", about="Ape-X with PER on Ray, two actors", settings=PER, engine=ON_RAY),
        Arm(name="pser-ray", about="Ape-X with PSER on Ray, two actors", settings=PSER, engine=ON_RAY),
    ),
    games=(Game(env="minatar:breakout"),),
    seeds=2,
    settings={
        # The apex preset, with batches, memory and periods of MinAtar; eight samples per insert, as there.
        **LONGER_STEPS_ON_MINATAR,
        "num_envs": 8,
        "batch_size": 32,
        "update_period_steps": 4,
        "initial": "td",
        "n_step": 3,
        "alpha": 0.6,
        "beta": 0.4,
        "beta_end": 0.4,
        "double_q": True,
        "dueling": True,
        "epsilon_start": 0.4,
        "epsilon_end": 0.4,
        "epsilon_spread": 7.0,
        "budget_frames": 1_000_000,
        "eval_period_frames": 100_000,
        "checkpoint_period_frames": 100_000,
        "tensorboard": False,
    },
    contrasts=(
        Contrast(arm="pser-ray", against="per-ray", asks="Is Ape-X on Ray better with PSER than with PER?"),
        Contrast(
            arm="pser-ray", against="pser", asks="Is Ape-X with PSER another on Ray than in one process?"
        ),
        Contrast(arm="per-ray", against="per", asks="Is Ape-X with PER another on Ray than in one process?"),
    ),
    stopping="after two seeds: enough to see that it works, too few to tell a small difference",
    core_hours=1.5,
)
