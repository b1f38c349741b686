"""If PSER as published has no benefit of its own: what the arithmetic suggests, tried on three games."""

from pser.studies import arms
from pser.studies.arms import LOSS
from pser.studies.minatar import ASTERIX, BASE
from pser.studies.study import Arm, Contrast, Game, Study

LONG = {"rho": 0.8, "window": 20}

STUDY = Study(
    name="remedies",
    question="Where decay is given mass, does it help?",
    arms=(
        arms.PER_LOSS,
        Arm(
            name="per-insert",
            about="PER, Huber loss, CurrentTD: as pser-insert, without its decay",
            settings={"replay": "per", **LOSS, "initial": "td"},
        ),
        arms.PSER_LONG,
        Arm(
            name="pser-insert",
            about="PSER, Huber loss, η = 0, ρ = 0.8, W = 20, CurrentTD: decay on insertion",
            settings={"replay": "pser", **LOSS, **LONG, "eta": 0.0, "initial": "td"},
        ),
        Arm(
            name="pser-eta0.3",
            about="PSER, Huber loss, η = 0.3, ρ = 0.8, W = 20",
            settings={"replay": "pser", **LOSS, **LONG, "eta": 0.3},
        ),
        Arm(
            name="pser-decayed-long",
            about="PSER, Huber loss, ρ = 0.8, W = 20, η = 0.7 of what came by decay only",
            settings={"replay": "pser", **LOSS, **LONG, "retain": "decayed"},
        ),
        Arm(
            name="pser-adaptive-loss",
            about="PSER, Huber loss, η = 0, ρ = 0.8, adaptive window",
            settings={**arms.PSER_ADAPTIVE.settings, **LOSS, "window_floor": 0.001},
        ),
    ),
    games=(
        Game(env="minatar:breakout"),
        Game(env="minatar:freeway", take_off=3.0, seeds=5),
        ASTERIX,
    ),
    seeds=3,
    settings=BASE,
    contrasts=(
        *(
            Contrast(arm=name, against="per-loss", asks=f"Is {name} better than PER with the same signal?")
            for name in (
                "pser-loss-long",
                "pser-insert",
                "pser-eta0.3",
                "pser-decayed-long",
                "pser-adaptive-loss",
            )
        ),
        Contrast(arm="per-insert", against="per-loss", asks="Does CurrentTD alone help PER?"),
        Contrast(arm="pser-insert", against="per-insert", asks="Does decay add anything to CurrentTD?"),
    ),
    stopping="run only if `minatar` shows no benefit of decay; then after 3 seeds (5 on Freeway)",
    core_hours=3.5,
)
