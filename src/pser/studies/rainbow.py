"""Does Rainbow learn faster than DQN on MinAtar, under every replay strategy; and does PSER help it?"""

from pser.learner.presets import RAINBOW_ON_MINATAR
from pser.studies.minatar import BASE
from pser.studies.study import Arm, Contrast, Game, Study

REPLAYS = {"uniform": "uniform replay", "per": "PER", "pser": "PSER as published"}

STUDY = Study(
    name="rainbow",
    question="Is Rainbow above DQN on MinAtar, and does PSER go well with it?",
    arms=(
        *(
            Arm(name=f"dqn-{name}", about=f"DQN, {about}", settings={"replay": name})
            for name, about in REPLAYS.items()
        ),
        *(
            Arm(
                name=f"rainbow-{name}",
                about=f"Rainbow, {about}",
                settings={"replay": name, **RAINBOW_ON_MINATAR},
            )
            for name, about in REPLAYS.items()
        ),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=BASE,
    contrasts=(
        *(
            Contrast(arm=f"rainbow-{name}", against=f"dqn-{name}", asks=f"Is Rainbow above DQN with {about}?")
            for name, about in REPLAYS.items()
        ),
        Contrast(arm="rainbow-per", against="rainbow-uniform", asks="Does PER help Rainbow?"),
        Contrast(arm="rainbow-pser", against="rainbow-per", asks="Is PSER better than PER in Rainbow?"),
    ),
    stopping="after 3 seeds; if Rainbow is not above DQN, its ablation follows (`rainbow-parts`)",
    core_hours=3.5,
)
