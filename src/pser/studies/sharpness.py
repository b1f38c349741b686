"""How much of the gain is just a sharper priority? PER and PSER over α and the signal."""

from pser.studies.arms import LOSS, UNIFORM
from pser.studies.minatar import BASE
from pser.studies.study import Arm, Contrast, Game, Study

ALPHAS = (0.4, 0.6, 0.8)


def _arm(replay: str, alpha: float, signal: str) -> Arm:
    name = "PER" if replay == "per" else "PSER as published"
    return Arm(
        name=f"{replay}-{signal}-{alpha:g}",
        about=f"{name}, {'|δ|' if signal == 'td' else 'Huber loss'}, α = {alpha:g}",
        settings={"replay": replay, **(LOSS if signal == "loss" else {}), "alpha": alpha},
    )


STUDY = Study(
    name="sharpness",
    question="How much of a gain by priorities is just their sharpness?",
    arms=(
        UNIFORM,
        *(
            _arm(replay, alpha, signal)
            for replay in ("per", "pser")
            for signal in ("td", "loss")
            for alpha in ALPHAS
        ),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=BASE,
    contrasts=(
        *(
            Contrast(
                arm=f"pser-{signal}-{alpha:g}",
                against=f"per-{signal}-{alpha:g}",
                asks=f"Is PSER better than PER at the same sharpness ({signal}, α = {alpha:g})?",
            )
            for signal in ("td", "loss")
            for alpha in ALPHAS
        ),
        Contrast(
            arm="per-loss-0.6", against="per-td-0.6", asks="Is the loss a better signal for PER at α = 0.6?"
        ),
    ),
    stopping="after 3 seeds",
    core_hours=3,
)
