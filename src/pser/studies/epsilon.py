"""Where ε stands in RMSProp: does it explain where the curves of `check` left the published ones?"""

from functools import partial

from pser.learner.presets import LONGER_STEPS_ON_MINATAR
from pser.studies.arms import PER_LOSS, UNIFORM
from pser.studies.check import PUBLISHED, compare, draw
from pser.studies.check import STUDY as CHECK
from pser.studies.results import Results
from pser.studies.study import Arm, Study
from pser.studies.telling import Told

PLACES = {
    "beside": ("ε = 0.01 beside the root", {"optimizer_eps": 0.01, "eps_in_sqrt": False}),
    "inside": ("ε = 0.0001 inside the root", LONGER_STEPS_ON_MINATAR),
}
"""As published (PyTorch's rule), and as the first runs of `check` had it and the faster studies have it."""


def at(place: str, arm: Arm) -> Arm:
    """The arm with ε there."""
    about, settings = PLACES[place]
    return Arm(
        name=f"{arm.name}-{place}", about=f"{arm.about}; {about}", settings={**arm.settings, **settings}
    )


def arms_at(place: str) -> dict[str, str]:
    """The arms with ε there, as the published figures call them."""
    return {f"{arm}-{place}": name for arm, name in PUBLISHED.items()}


def tell(results: Results) -> Told:
    """How near either place of ε comes to the published figures."""
    made = {about: compare(results, arms_at(place)) for place, (about, _) in PLACES.items()}
    page = "\n\n".join(comparison.page() for comparison in made.values() if comparison.rows)
    near = [
        f"with {about} at {comparison.near()}" for about, comparison in made.items() if comparison.distances
    ]
    if not near:
        return Told("Not known yet: a standard error needs two seeds.", page)
    return Told(f"Our mean lies within two standard errors of the published one {', and '.join(near)}.", page)


STUDY = Study(
    name="epsilon",
    question="Does the place of ε in RMSProp explain where our curves leave the published ones?",
    arms=tuple(at(place, arm) for place in PLACES for arm in (UNIFORM, PER_LOSS)),
    games=CHECK.games,
    seeds=3,
    settings=CHECK.settings,
    stopping="after 3 seeds; it explains the difference if the published place is nearer at most points and within two "
    "standard errors at most of them",
    core_hours=4.5,
    tell=tell,
    figures={f"published-{place}": partial(draw, arms=arms_at(place)) for place in PLACES},
)
