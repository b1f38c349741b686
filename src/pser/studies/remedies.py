"""If PSER as published has no benefit of its own: what the arithmetic suggests, tried on three games.

Decay and CurrentTD are each tested over two pairs of arms, declared so before the first run of its own.
"""

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
        Contrast(
            arm="decay (η = 0)",
            against="none",
            asks="Does decay help where it has mass?",
            pairs=(("pser-loss-long", "per-loss"), ("pser-insert", "per-insert")),
        ),
        Contrast(
            arm="CurrentTD",
            against="MaxPrio",
            asks="Does CurrentTD help, with decay and without?",
            pairs=(("per-insert", "per-loss"), ("pser-insert", "pser-loss-long")),
        ),
        *(
            Contrast(arm=name, against="per-loss", asks=f"Is {name} better than PER with the same signal?")
            for name in ("pser-eta0.3", "pser-decayed-long", "pser-adaptive-loss")
        ),
    ),
    only_if="`minatar` shows no benefit of decay",
    stopping="after 3 seeds (5 on Freeway)",
    core_hours=3.5,
)
