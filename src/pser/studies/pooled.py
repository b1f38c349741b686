"""The questions that several studies answer together; written down when two of ten seeds of `chain` had been seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from pser.analysis.markdown import table
from pser.analysis.statistics.aggregate import probability_of_improvement
from pser.studies.advice import Advice
from pser.studies.cells import Cells, Stratum, stratum
from pser.studies.results import SEED, Results, Tested, cells_otherwise, correct, probe
from pser.studies.study import Contrast
from pser.studies.telling import gain_text, probability_text, shown_from_text, verdict_text

Pair = tuple[str, str, str]
"""A study, one of its arms, and the arm it is compared with."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, and the pairs of arms that differ in just what it asks about."""

    asks: str
    pairs: tuple[Pair, ...]
    """No arm of a study occurs twice: a run counts once."""
    advice: Advice

    @property
    def contrast(self) -> Contrast:
        """As the tests name it."""
        return Contrast(arm="with", against="without", asks=self.asks, advice=self.advice)


def _both(arm: str, against: str) -> tuple[Pair, ...]:
    return (("chain", arm, against), ("minatar", arm, against))


DECAY = Question(
    asks="Does backward decay help?",
    pairs=(
        *_both("pser", "per-eta"),
        ("chain", "pser-eta0", "per"),
        ("minatar", "pser-loss-long", "per-loss"),
    ),
    advice=Advice(
        if_yes="Turn backward decay on: `pser.PSER`.",
        if_reverse="Leave backward decay off: `pser.PER`.",
        if_level="Do not count on backward decay by itself. It costs hardly any time, so where rewards are rare it is "
        "worth a comparison of your own.",
    ),
)
QUESTIONS = (
    DECAY,
    Question(
        asks="Does η help, without decay?",
        pairs=_both("per-eta", "per"),
        advice=Advice(
            if_yes="Keep a share η of every priority: `eta=0.7`.",
            if_reverse="Where new transitions enter at the largest priority, do not keep a share η of it: "
            '`eta=0.0`, or `retain="decayed"`.',
            if_level="Where new transitions enter at the largest priority, leave η at 0: it hides what decay does.",
        ),
    ),
    Question(
        asks="Is CurrentTD better than MaxPrio in PSER?",
        pairs=_both("pser-currenttd", "pser"),
        advice=Advice(
            if_yes="In PSER with η, let new transitions enter with their own TD error: `add(..., td_error=...)`, "
            "`--initial td`.",
            if_reverse="Let new transitions enter at the largest priority, as they do by default.",
            if_level="Let new transitions enter at the largest priority, as they do by default: CurrentTD costs a "
            "forward pass a step.",
        ),
    ),
    Question(
        asks="Is PSER as published better than PER?",
        pairs=_both("pser", "per"),
        advice=Advice(
            if_yes="Take `pser.PSER()` before `pser.PER()`.",
            if_reverse="Take `pser.PER()` before PSER as published (MaxPrio, η = 0.7).",
            if_level="Of PSER as published (MaxPrio, η = 0.7) and PER take `pser.PER()`, the simpler.",
        ),
    ),
    Question(
        asks="Is PSER as published better than uniform replay?",
        pairs=_both("pser", "uniform"),
        advice=Advice(
            if_yes="Take `pser.PSER()` before `pser.Uniform()`.",
            if_reverse="Take `pser.Uniform()` before PSER as published.",
            if_level="Do not expect PSER as published to beat uniform replay.",
        ),
    ),
    Question(
        asks="Is PER better than uniform replay?",
        pairs=_both("per", "uniform"),
        advice=Advice(
            if_yes="Prioritize: `pser.PER(alpha=0.6)` before `pser.Uniform()`.",
            if_reverse="Do not prioritize: `pser.Uniform()`.",
            if_level="Run `pser.Uniform()` beside any prioritization: PER may not beat it on your game.",
        ),
    ),
    Question(
        asks="Is the loss a better signal than |δ| for PER (a sharper priority)?",
        pairs=(("minatar", "per-loss", "per"),),
        advice=Advice(
            if_yes="Tell the memory the loss of a transition instead of |δ|: `--priority-signal loss`.",
            if_reverse="Tell the memory |δ|, not the loss.",
            if_level="Tell the memory |δ|, as usual, unless more runs show that the loss is better.",
        ),
    ),
)
"""What users ask. Their p-values are corrected together."""


def pooled(found: Mapping[str, Results]) -> list[Tested]:
    """Each question tested over all games of all its pairs, as far as there are runs."""
    rng = np.random.default_rng(SEED)
    probed = [probe(question.contrast, strata_of(found, question.pairs), rng) for question in QUESTIONS]
    return correct([tested for tested in probed if tested is not None], of=len(QUESTIONS))


def otherwise(found: Mapping[str, Results]) -> dict[str, float]:
    """Question → its probability if the same runs are measured in the other way: a check, which tests nothing."""
    measured = {study: cells for study, results in found.items() if (cells := cells_otherwise(results))}
    probabilities = {}
    for question in QUESTIONS:
        strata = [one for one in strata_of(found, question.pairs, measured) if len(one.x) and len(one.y)]
        if strata:
            xs, ys = [one.x for one in strata], [one.y for one in strata]
            probabilities[question.asks] = float(probability_of_improvement(xs, ys))
    return probabilities


def strata_of(
    found: Mapping[str, Results], pairs: Sequence[Pair], measured: Mapping[str, Cells] | None = None
) -> list[Stratum]:
    """The runs on all games of the pairs, by the declared measure unless `measured` has them by another."""
    cells = {study: results.cells for study, results in found.items()} if measured is None else measured
    return [
        stratum(cells[study], game, arm, other, f"{study} {game.env}")
        for study, arm, other in pairs
        if study in cells
        for game in found[study].study.games
    ]


def pooled_table(tested: Sequence[Tested], measured_otherwise: Mapping[str, float] | None = None) -> str:
    """Question, answer and certainty, over all and in each study, a line a question; empty without runs."""
    other = measured_otherwise or {}
    studies = studies_of(tested)
    rows = [
        [
            one.contrast.asks,
            verdict_text(one),
            probability_text(one),
            gain_text(one),
            *(_within(one, study) for study in studies),
            f"{other[one.contrast.asks]:.2f}" if one.contrast.asks in other else "–",
            f"{one.corrected:.2g}",
            shown_from_text(one.shown_from),
            f"{one.wins} of {len(one.games)}",
            str(one.runs),
        ]
        for one in tested
    ]
    within = [f"in `{study}`" for study in studies]
    header = ["question", "answer", "probability", "gain", *within, "otherwise measured", "p, corrected"]
    header += ["would be shown from", "games ahead", "runs"]
    return f"{table(header, rows)}\n\n{OTHERWISE_TEXT}" if rows else ""


OTHERWISE_TEXT = (
    "*Otherwise measured*: the probability if the area under the learning curve stands for a run where the study "
    "declared its last tenth, and the last tenth where it declared the area. Not declared, not tested: it tells "
    "whether an answer hangs on the measure."
)


def studies_of(tested: Sequence[Tested]) -> list[str]:
    """The studies whose games answer the questions."""
    return sorted({study_of(game) for one in tested for game in one.games})


def study_of(game: str) -> str:
    """The study that a game of a pooled question is of."""
    return game.partition(" ")[0]


def _within(tested: Tested, study: str) -> str:
    """The probability over the games of one study."""
    values = [
        value for game, value in zip(tested.games, tested.by_game, strict=True) if study_of(game) == study
    ]
    return f"{mean(values):.2f}" if values else "–"


def pooled_note(found: Mapping[str, Results]) -> str:
    """What the answers are made of, and which studies are not whole yet."""
    return f"{POOLED} {unfinished(found)}".strip()


def unfinished(found: Mapping[str, Results]) -> str:
    """Which studies that answer questions are not whole yet; empty if all are."""
    named = {study for question in QUESTIONS for study, _, _ in question.pairs}
    open_ = [
        f"`{name}` ({results.done} of {results.planned} runs)"
        for name, results in found.items()
        if name in named and not results.whole
    ]
    if not open_:
        return ""
    so_far = "Until then these are answers of the runs so far, and may change."
    return f"**Not finished: {', '.join(open_)}.** {so_far}"


POOLED = (
    "Over all games of the studies `chain` and `minatar`, from the pairs of arms that differ in just what is asked. "
    "*Probability*: that a run with it scores higher than one without on the same game. *Gain*: by how much its mean "
    "is higher, of what the study's best arm learned there. The questions were written down when two of the ten seeds "
    "of `chain` had been seen, and of `minatar` a seed of every arm on Breakout and of two on Freeway, besides first "
    "runs with other settings on both, which are not kept."
)
