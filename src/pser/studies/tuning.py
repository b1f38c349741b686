"""Tuning as a study: the paper's coordinate descent, and a random search that may try as many settings."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pser.analysis.markdown import table
from pser.analysis.statistics.bootstrap import LEFT_OUT, stratified_resample
from pser.studies.record import Record
from pser.studies.results import Results
from pser.studies.study import Arm, Planned, Study
from pser.studies.telling import Told

Choice = tuple[float, ...]
"""One value for each coordinate."""
COORDINATES = ("window", "rho", "eta")
PAPER_VALUES: dict[str, tuple[float, ...]] = {
    "window": (5, 10, 20),
    "rho": (0.4, 0.65, 0.8),
    "eta": (0.0, 0.3, 0.5, 0.7),
}
"""Brittain et al. 2019, appendix, "PSER hyperparameters tested in experiments"."""
RESAMPLES = 1_000


def arm_of(choice: Choice, names: Sequence[str] = COORDINATES) -> Arm:
    """PSER with these values."""
    values = dict(zip(names, choice, strict=True))
    if "window" in values:
        values["window"] = int(values["window"])
    return Arm(
        name="-".join(f"{name}{value:g}" for name, value in values.items()),
        about=", ".join(f"{name} = {value:g}" for name, value in values.items()),
        settings={"replay": "pser", **values},
    )


def all_choices(values: Mapping[str, Sequence[float]]) -> list[Choice]:
    """The whole grid."""
    return list(itertools.product(*values.values()))


def random_choices(values: Mapping[str, Sequence[float]], count: int, seed: int) -> list[Choice]:
    """`count` different settings of the grid, drawn evenly."""
    grid = all_choices(values)
    picked = np.random.default_rng(seed).permutation(len(grid))[:count]
    return [grid[index] for index in picked]


def budget(values: Mapping[str, Sequence[float]]) -> int:
    """How many settings a coordinate descent tries: all of the first coordinate, then the others' new ones."""
    return 1 + sum(len(one) - 1 for one in values.values())


Scores = dict[Choice, dict[str, list[float]]]
"""Setting → game → the measure, a value a seed."""


def stage_score(scores: Scores, candidates: Sequence[Choice]) -> dict[Choice, float]:
    """Mean over games of each candidate's mean, on a scale from the worst of them (0) to the best (1)."""
    total = dict.fromkeys(candidates, 0.0)
    games = list(scores[candidates[0]])
    for game in games:
        means = {choice: float(np.mean(scores[choice][game])) for choice in candidates}
        low, high = min(means.values()), max(means.values())
        for choice, mean in means.items():
            total[choice] += (mean - low) / (high - low) if high > low else 0.5
    return {choice: value / len(games) for choice, value in total.items()}


def best_of(scores: Scores, candidates: Sequence[Choice]) -> Choice:
    """The highest score; of equals the first."""
    found = stage_score(scores, candidates)
    return max(candidates, key=lambda choice: found[choice])


def descend(
    values: Mapping[str, Sequence[float]], start: Choice, scores: Scores
) -> tuple[list[Choice], Choice | None]:
    """Tune one coordinate after the other, each fixed at its best (Brittain et al. 2019, Section 5.1).

    Every setting tried, in order; and the choice, None as long as one of them has no score.
    """
    tried, current = [], start
    for place, name in enumerate(values):
        candidates = [(*current[:place], value, *current[place + 1 :]) for value in values[name]]
        tried += [choice for choice in candidates if choice not in tried]
        if any(choice not in scores for choice in candidates):
            return tried, None
        current = best_of(scores, candidates)
    return tried, current


@dataclass(frozen=True, kw_only=True)
class Tuning(Study):
    """A study whose next runs depend on what the last ones showed."""

    values: Mapping[str, Sequence[float]] = field(default_factory=lambda: dict(PAPER_VALUES))
    """Coordinate → the values to try, in the order in which the coordinates are tuned."""
    search_seed: int = 0
    """Seed of the random search."""

    @property
    def start(self) -> Choice:
        """The first value of every coordinate (where the paper started is not said)."""
        return tuple(one[0] for one in self.values.values())

    def runs(self, records: Mapping[str, Record], seeds: int | None = None) -> Sequence[Planned]:
        """What the descent needs so far, then the random search."""
        tried, _ = descend(self.values, self.start, self.scores(records, seeds))
        wanted = dict.fromkeys([*tried, *random_choices(self.values, budget(self.values), self.search_seed)])
        arms = [arm_of(choice, tuple(self.values)) for choice in wanted]
        return [
            Planned(game, arm, seed) for seed in self._seeds(seeds) for arm in arms for game in self.games
        ]

    def _seeds(self, seeds: int | None) -> range:
        return range(self.first_seed, self.first_seed + (seeds or self.seeds))

    def scores(self, records: Mapping[str, Record], seeds: int | None = None) -> Scores:
        """The settings of which every run is there."""
        found: Scores = {}
        for choice in all_choices(self.values):
            arm, by_game = arm_of(choice, tuple(self.values)), {}
            for game in self.games:
                paths = [Planned(game, arm, seed).path for seed in self._seeds(seeds)]
                made = [self.measure.compute(records[path].curve) for path in paths if path in records]
                if len(made) == len(paths):
                    by_game[game.env] = [value or 0.0 for value in made]
            if len(by_game) == len(self.games):
                found[choice] = by_game
        return found


def tell(results: Results) -> Told:
    """What each search chose, and how often resampled seeds would choose the same."""
    study = results.study
    assert isinstance(study, Tuning)
    scores = study.scores(results.records)
    tried, chosen = descend(study.values, study.start, scores)
    drawn = random_choices(study.values, budget(study.values), study.search_seed)
    rows, parts = [], []
    if chosen is None:
        parts.append(f"the descent goes on ({sum(one in scores for one in tried)} settings measured)")
    else:
        again = chosen_again(scores, lambda found: descend_within(study, found, tried), chosen)
        parts.append(
            f"coordinate descent chose {_name(study, chosen)}, {again:.0%} of resampled seeds choose it again"
        )
        rows.append(["coordinate descent", _name(study, chosen), str(len(tried)), f"{again:.0%}"])
    if all(one in scores for one in drawn):
        best = best_of(scores, drawn)
        again = chosen_again(scores, lambda found: best_of(found, drawn), best)
        parts.append(f"random search of as many settings chose {_name(study, best)} ({again:.0%})")
        rows.append(["random search", _name(study, best), str(len(drawn)), f"{again:.0%}"])
    else:
        parts.append(f"the random search goes on ({sum(one in scores for one in drawn)} of {len(drawn)})")
    text = "; ".join(parts)
    header = ["search", "choice", "settings tried", "chosen again by resampled seeds"]
    return Told(f"{text[0].upper()}{text[1:]}.", table(header, rows) if rows else "")


def descend_within(study: Tuning, scores: Scores, tried: Sequence[Choice]) -> Choice | None:
    """The descent by other scores of the same settings; None if it would have gone where nothing was measured."""
    known = {choice: scores[choice] for choice in scores if choice in tried}
    return descend(study.values, study.start, known)[1]


def chosen_again(scores: Scores, choose: Callable[[Scores], Choice | None], chosen: Choice) -> float:
    """Share of bootstrap resamples of the seeds in which the same setting is chosen."""
    cells = [(choice, game) for choice, by_game in scores.items() for game in by_game]
    values = [np.asarray(scores[choice][game]) for choice, game in cells]
    resampled = stratified_resample(values, RESAMPLES, np.random.default_rng(0), left_out=LEFT_OUT)
    hits = 0
    for number in range(RESAMPLES):
        drawn: Scores = {choice: {} for choice in scores}
        for (choice, game), draws in zip(cells, resampled, strict=True):
            drawn[choice][game] = draws[number].tolist()
        hits += choose(drawn) == chosen
    return hits / RESAMPLES


def _name(study: Tuning, choice: Choice) -> str:
    return arm_of(choice, tuple(study.values)).about
