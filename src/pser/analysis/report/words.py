"""The result in sentences: which differences are shown, how large they are, how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pser.analysis.report.comparison import Comparison, Pair, Value
from pser.analysis.report.numbers import Fixed
from pser.analysis.report.runs import RunSet
from pser.analysis.report.scoreboard import Scoreboard
from pser.analysis.statistics.comparisons import SHOWN
from pser.analysis.statistics.power import about, seeds_needed

MOST_SENTENCES = 8
"""Pairs told in words; the table has all."""


@dataclass(frozen=True)
class Sentence:
    """A statement: its head says what, its rest by how much and how sure."""

    head: str
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.head} {self.rest}".rstrip()


def summary(runs: RunSet, board: Scoreboard, comparison: Comparison) -> list[Sentence]:
    """A few sentences, the most important first; the other pairs are left to the table."""
    scope = Sentence("Compared:", _scope(runs, board, comparison))
    if not board.boards:
        return [Sentence("No returns were recorded yet,", "so there is nothing to compare."), scope]
    if len(runs.labels) == 1:
        return [Sentence(f"All runs are {runs.labels[0]}:", "there is nothing to compare it with."), scope]
    chosen = set(runs.main_labels)
    pairs = [pair for pair in comparison.pairs if {pair.x, pair.y} <= chosen]
    # What was shown comes first; else the order of the labels, PSER over PER first.
    told = sorted(pairs, key=lambda pair: not pair.shown)[:MOST_SENTENCES]
    sentences = [pair_sentence(pair) for pair in told]
    pooled = _pooled(comparison)
    return [*sentences, *([pooled] if pooled else []), scope]


def pair_sentence(pair: Pair) -> Sentence:
    """Whether a difference is shown, with both means; "ahead" only where the test says so."""
    games = _games(pair.envs)
    if not pair.shown:
        head = f"No difference shown between {pair.x} and {pair.y} on {games} ({p_text(pair.corrected)})."
        return Sentence(head, f"{_means(pair)} {_what_seeds_can_do(pair)}".rstrip())
    if not pair.ahead:
        pair = pair.turned()
    head = f"{pair.x} is ahead of {pair.y} on {games} ({p_text(pair.corrected)})."
    chance = f"{pair.probability.value:.2f}{interval(pair.probability)}"
    return Sentence(head, f"{_means(pair)} A run of it scores higher with probability {chance}.")


def interval(value: Value) -> str:
    """` [0.45, 0.95]`, or nothing without an interval."""
    return f" [{value.interval.low:.2f}, {value.interval.high:.2f}]" if value.interval else ""


def p_text(p_value: float) -> str:
    """`p = 0.44`, `p = 0.031` or `p < 0.001`."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.2f}" if p_value >= 0.1 else f"p = {p_value:.3f}"


def _scope(runs: RunSet, board: Scoreboard, comparison: Comparison) -> str:
    scored = sum(len(b.scores) for b in board.boards)
    kind = "final score" if comparison.kind == "final" else "score of the best snapshot"
    missing = len(runs.runs) - scored
    left = f" ({missing} without a comparable score)" if missing else ""
    named = ", ".join(runs.labels) if len(runs.labels) <= 8 else f"{len(runs.labels)} labels"
    tested = f"; permutation tests, p corrected for {_count(len(comparison.pairs), 'comparison')} (Holm)"
    return (
        f"{_count(len(runs.runs), 'run')}{left} of {named} on {_games(runs.envs)}, by the {kind}"
        f"{tested if comparison.pairs else ''}."
    )


def _pooled(comparison: Comparison) -> Sentence | None:
    """The interquartile means, where several games are pooled."""
    if len(comparison.labels) < 2:
        return None
    scale = "human-normalised" if comparison.scale == "human" else "min–max-normalised"
    means = [(label.label, label.statistics["IQM"]) for label in comparison.labels]
    listed = ", ".join(f"{name} {value.value:.2f}{interval(value)}" for name, value in means)
    head = f"Interquartile mean of the {scale} scores over {_games(comparison.envs)}:"
    return Sentence(head, f"{listed}.")


def _means(pair: Pair) -> str:
    """Both mean scores on one game; over several the games won and the median of the changes."""
    if len(pair.means) == 1:
        (both,) = pair.means.values()
        fixed = Fixed.of(both)
        return f"Mean scores {fixed(both[0])} and {fixed(both[1])} over {_seeds(pair)}."
    higher = sum(x > y for x, y in pair.means.values())
    equal = sum(x == y for x, y in pair.means.values())
    ties = f" and equal on {equal}" if equal else ""
    text = f"{pair.x} has the higher mean on {higher} of {len(pair.means)} games{ties}"
    finite = [change for change in pair.changes().values() if math.isfinite(change)]
    if finite:
        text += f", in the median game by {median(finite):+.1f}%"
    return f"{text}; {_seeds(pair)}."


def _what_seeds_can_do(pair: Pair) -> str:
    """Whether so few seeds could have shown a difference at all."""
    best = pair.smallest_p_value
    sweep = "even if every run of one beat every run of the other"
    if best >= SHOWN and pair.single_seed:
        return "A single seed a side cannot show one: another seed may turn it round."
    if best >= SHOWN:
        return f"So few seeds cannot show one: {sweep}, {p_text(best)}."
    if best * pair.comparisons >= SHOWN:
        corrected = p_text(min(1.0, best * pair.comparisons))
        return (
            f"Among {pair.comparisons} comparisons so few seeds can hardly show one: {sweep}, {corrected} "
            "after correction."
        )
    return _seeds_that_would_show(pair)


def _seeds_that_would_show(pair: Pair) -> str:
    """How many seeds the difference takes that was found, where it is one and these were fewer."""
    found = pair.probability.value
    if found == 0.5:
        return ""
    needed = seeds_needed(found, len(pair.envs), SHOWN / pair.comparisons)
    if needed <= min(pair.seeds_x[0], pair.seeds_y[0]):
        return ""
    return (
        f"A run of {pair.x} scores higher with probability {found:.2f}: to show as much takes {about(needed)} seeds "
        "each, mostly."
    )


def _games(envs: Sequence[str]) -> str:
    return envs[0] if len(envs) == 1 else f"{len(envs)} games"


def _seeds(pair: Pair) -> str:
    def side(seeds: tuple[int, int]) -> str:
        return f"{seeds[0]}" if seeds[0] == seeds[1] else f"{seeds[0]} to {seeds[1]}"

    if pair.seeds_x == pair.seeds_y:
        return "one seed each" if pair.seeds_x == (1, 1) else f"{side(pair.seeds_x)} seeds each"
    return f"{side(pair.seeds_x)} and {side(pair.seeds_y)} seeds"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
