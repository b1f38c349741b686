"""Is it luck? The one point of `check` that lies off the published curve, with fresh seeds, and with all."""

from dataclasses import replace

from pser.studies.arms import PER_LOSS
from pser.studies.check import PUBLISHED, compare
from pser.studies.check import STUDY as CHECK
from pser.studies.results import Results
from pser.studies.study import Game, Study
from pser.studies.telling import Told


def tell(results: Results) -> Told:
    """Ours beside the published figures: seeds that `check` has not by themselves, and all of them."""
    fresh = {path: record for path, record in results.records.items() if record.seed >= CHECK.seeds}
    by_seeds = {"fresh seeds": replace(results, records=fresh), "all seeds": results}
    made = {name: compare(of, PUBLISHED) for name, of in by_seeds.items()}
    near = [f"with {name} at {one.near()}" for name, one in made.items() if one.distances]
    page = "\n\n".join(
        f"With {name}:\n\n{comparison.page()}" for name, comparison in made.items() if comparison.rows
    )
    if len(near) < len(made):
        return Told("Not known yet: a standard error needs two fresh seeds.", page)
    return Told(f"Our mean lies within two standard errors of the published one {', and '.join(near)}.", page)


STUDY = Study(
    name="check-again",
    question="Does the one point of `check` beyond two standard errors lie there with fresh seeds?",
    arms=(PER_LOSS,),
    games=(Game(env="minatar:asterix"),),
    seeds=2 * CHECK.seeds,
    settings=CHECK.settings,
    stopping="after as many seeds again as `check` has; the point was luck if the fresh ones lie within two standard "
    "errors of the published one",
    core_hours=0.5,
    tell=tell,
)
