"""The questions that several studies answer together; written down when two of ten seeds of `chain` had been seen."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pser.analysis.markdown import table
from pser.studies.results import SEED, Results, Tested, correct, probe
from pser.studies.study import Contrast
from pser.studies.telling import probability_text, verdict_text


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, and the pairs of arms that differ in just what it asks about."""

    asks: str
    pairs: tuple[tuple[str, str, str], ...]
    """Study, arm, and the arm it is compared with. No arm occurs twice: a run counts once."""

    @property
    def contrast(self) -> Contrast:
        """As the tests name it."""
        return Contrast(arm="with", against="without", asks=self.asks)


def _both(arm: str, against: str) -> tuple[tuple[str, str, str], ...]:
    return (("chain", arm, against), ("minatar", arm, against))


QUESTIONS = (
    Question(
        asks="Does backward decay help?",
        pairs=(
            *_both("pser", "per-eta"),
            ("chain", "pser-eta0", "per"),
            ("minatar", "pser-loss-long", "per-loss"),
        ),
    ),
    Question(asks="Does η help, without decay?", pairs=_both("per-eta", "per")),
    Question(asks="Is CurrentTD better than MaxPrio in PSER?", pairs=_both("pser-currenttd", "pser")),
    Question(asks="Is PSER as published better than PER?", pairs=_both("pser", "per")),
    Question(asks="Is PSER as published better than uniform replay?", pairs=_both("pser", "uniform")),
    Question(asks="Is PER better than uniform replay?", pairs=_both("per", "uniform")),
    Question(
        asks="Is the loss a better signal than |δ| for PER (a sharper priority)?",
        pairs=(("minatar", "per-loss", "per"),),
    ),
)
"""What users ask. Their p-values are corrected together."""


def pooled(found: Mapping[str, Results]) -> list[Tested]:
    """Each question tested over all games of all its pairs, as far as there are runs."""
    rng = np.random.default_rng(SEED)
    probed = []
    for question in QUESTIONS:
        strata = [
            (
                f"{study} {game.env}",
                found[study].cells[game.env, arm].values,
                found[study].cells[game.env, other].values,
            )
            for study, arm, other in question.pairs
            if study in found
            for game in found[study].study.games
        ]
        tested = probe(question.contrast, strata, rng)
        if tested is not None:
            probed.append(tested)
    return correct(probed)


def pooled_table(found: Mapping[str, Results]) -> str:
    """Question, answer and certainty, a line a question that has any runs; empty without."""
    rows = [
        [
            tested.contrast.asks,
            verdict_text(tested),
            probability_text(tested),
            f"{tested.corrected:.2g}",
            f"{tested.wins} of {len(tested.games)}",
            str(tested.runs),
        ]
        for tested in pooled(found)
    ]
    header = ["question", "answer", "probability", "p, corrected", "games ahead", "runs"]
    return table(header, rows) if rows else ""


POOLED = (
    "Over all games of the studies `chain` and `minatar`, from the pairs of arms that differ in just what is asked. "
    "*Probability*: that a run with it scores higher than one without on the same game. The questions were written "
    "down when two of the ten seeds of `chain`, and one game of `minatar`, had been seen."
)
