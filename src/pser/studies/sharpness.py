"""How much of the gain is just a sharper priority? PER and PSER over α and the signal.

What is tested was changed before the first run of its own: one pair of arms at a time, three seeds on two games would
show a probability of 0.98 at best. All runs together answer with more certainty, and they answer the question.
"""

from pathlib import Path

import numpy as np

from pser.analysis.markdown import table
from pser.analysis.statistics.comparisons import SHOWN, holm
from pser.analysis.statistics.trend import probability_of_rise, rise_p_value
from pser.studies.arms import LOSS, UNIFORM
from pser.studies.cells import stratum
from pser.studies.minatar import BASE
from pser.studies.results import PERMUTATIONS, SEED, Results, probe
from pser.studies.study import Arm, Contrast, Game, Study
from pser.studies.telling import Told

ALPHAS = (0.4, 0.6, 0.8)
EXPONENTS = {"td": 1.0, "loss": 2.0}
"""Signal → the power of |δ| it is, up to |δ| = 1: the Huber loss is δ²/2 there."""
NAMES = {"per": "PER", "pser": "PSER as published"}
SETTINGS = [(signal, alpha) for signal in EXPONENTS for alpha in ALPHAS]


def name_of(replay: str, signal: str, alpha: float) -> str:
    """The arm's name."""
    return f"{replay}-{signal}-{alpha:g}"


def exponent(signal: str, alpha: float) -> float:
    """The power of |δ| that transitions are sampled by; as sharp, whatever signal makes it."""
    return round(EXPONENTS[signal] * alpha, 6)


def _arm(replay: str, signal: str, alpha: float) -> Arm:
    return Arm(
        name=name_of(replay, signal, alpha),
        about=f"{NAMES[replay]}, {'|δ|' if signal == 'td' else 'Huber loss'}, α = {alpha:g}",
        settings={"replay": replay, **(LOSS if signal == "loss" else {}), "alpha": alpha},
    )


def tell(results: Results) -> Told:
    """Whether scores rise with sharpness, and whether PSER differs from PER where both are as sharp."""
    rng = np.random.default_rng(SEED)
    found = {
        f"with {NAMES[replay]}, the sharper of two runs scores higher": _rise(results, replay, rng)
        for replay in NAMES
    }
    found["at the same sharpness, a run of PSER scores higher than one of PER"] = _beside(results, rng)
    known = {what: pair for what, pair in found.items() if pair is not None}
    if not known:
        return Told("Not known yet: no two arms have runs on one game.", _means(results))
    corrected = holm([p_value for _, p_value in known.values()])
    parts = [
        f"{what} with probability {probability:.2f} ({'shown' if p < SHOWN else 'not shown'}, p = {p:.2g})"
        for (what, (probability, _)), p in zip(known.items(), corrected, strict=True)
    ]
    text = "; ".join(parts)
    return Told(f"{text[0].upper()}{text[1:]}.", _means(results))


def _rise(results: Results, replay: str, rng: np.random.Generator) -> tuple[float, float] | None:
    """Probability that the sharper of two runs scores higher, and its p-value, over all runs of the strategy."""
    levels, scores = [], []
    for game in results.study.games:
        cells = [
            (exponent(*setting), results.cells[game.env, name_of(replay, *setting)].values)
            for setting in SETTINGS
        ]
        if len({level for level, values in cells if len(values)}) > 1:
            levels.append(np.concatenate([np.full(len(values), level) for level, values in cells]))
            scores.append(np.concatenate([values for _, values in cells]))
    if not scores:
        return None
    p_value = rise_p_value(levels, scores, rng, permutations=PERMUTATIONS)
    return float(probability_of_rise(levels, scores)), p_value


def _beside(results: Results, rng: np.random.Generator) -> tuple[float, float] | None:
    """Probability that a run of PSER scores higher than one of PER, over all games and sharpnesses."""
    strata = [
        stratum(
            results.cells,
            game,
            name_of("pser", signal, alpha),
            name_of("per", signal, alpha),
            f"{game.env} {signal} {alpha:g}",
        )
        for game in results.study.games
        for signal, alpha in SETTINGS
    ]
    tested = probe(Contrast(arm="pser", against="per", asks=""), strata, rng)
    return None if tested is None else (tested.probability.value, tested.p_value)


def _means(results: Results) -> str:
    """The means in order of sharpness, PER beside PSER."""
    rows = [
        [
            f"\\|δ\\|^{exponent(signal, alpha):g}",
            f"{signal}, α = {alpha:g}",
            *(
                f"{cell.mean:.3g} ({len(cell.values)})" if len(cell.values) else "–"
                for game in results.study.games
                for cell in (results.cells[game.env, name_of(replay, signal, alpha)] for replay in NAMES)
            ),
        ]
        for signal, alpha in sorted(SETTINGS, key=lambda setting: exponent(*setting))
    ]
    games = [game.env.rpartition(":")[2] for game in results.study.games]
    header = ["sampled by", "made of", *(f"{game}, {replay}" for game in games for replay in NAMES)]
    return table(header, rows)


def draw(results: Results, folder: Path, name: str) -> list[Path]:
    """Scores over sharpness."""
    from pser.studies.own_figures import draw_over_sharpness

    return draw_over_sharpness(results, folder, name)


STUDY = Study(
    name="sharpness",
    question="How much of a gain by priorities is just their sharpness?",
    arms=(
        UNIFORM,
        *(_arm(replay, *setting) for replay in NAMES for setting in SETTINGS),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=BASE,
    tests="whether the sharper of two runs scores higher, for PER and for PSER (permutation test of Jonckheere's "
    "statistic, runs shuffled within each game), and whether PSER scores higher than PER at the same sharpness (over "
    "all games and settings); Holm's correction over the three",
    stopping="after 3 seeds",
    core_hours=3,
    tell=tell,
    figures={"sharpness": draw},
)
