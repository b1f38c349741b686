"""The result in sentences: who wins, by how much, how sure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pser.analysis.report.comparison import Comparison, Pair, Value
from pser.analysis.report.runs import RunSet
from pser.analysis.report.scoreboard import Scoreboard

LIKELY, SURE = 0.05, 0.01
"""p-values below which a difference is called unlikely, and very unlikely, to be luck."""


@dataclass(frozen=True)
class Sentence:
    """A statement: its head says who, its rest by how much and how sure."""

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
    sentences = [pair_sentence(pair) for pair in comparison.pairs if {pair.x, pair.y} <= chosen]
    pooled = _pooled(comparison)
    return [*sentences, *([pooled] if pooled else []), scope]


def pair_sentence(pair: Pair) -> Sentence:
    """Who of the two is ahead, by how much, and how sure; told from the side that is ahead."""
    if pair.probability.value < 0.5:
        pair = pair.turned()
    chance = pair.probability.value
    games = _games(pair.envs)
    details = [_change(pair)]
    if pair.single_seed:
        head = f"{_single_seed(pair)}."
    elif chance == 0.5:
        head = f"{pair.x} and {pair.y} are level on {games}."
    else:
        head = f"{pair.x} is ahead of {pair.y} on {games}."
        odds = f"A run of it scores higher with probability {chance:.2f}{interval(pair.probability)}"
        details.insert(0, odds)
    told = "; ".join(detail for detail in details if detail)
    how_much = f"{told[0].upper()}{told[1:]}. " if told else ""
    return Sentence(head, f"{how_much}{_sureness(pair)}")


def interval(value: Value) -> str:
    """` [0.45, 0.95]`, or nothing without an interval."""
    return f" [{value.interval.low:.2f}, {value.interval.high:.2f}]" if value.interval else ""


def p_text(p_value: float) -> str:
    """`p = 0.031` or `p < 0.001`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def _scope(runs: RunSet, board: Scoreboard, comparison: Comparison) -> str:
    scored = sum(len(b.scores) for b in board.boards)
    kind = "final score" if comparison.kind == "final" else "score of the best snapshot"
    missing = len(runs.runs) - scored
    left = f" ({missing} without a comparable score)" if missing else ""
    return (
        f"{_count(len(runs.runs), 'run')}{left} of {', '.join(runs.labels)} on {_games(runs.envs)}, "
        f"by the {kind}."
    )


def _pooled(comparison: Comparison) -> Sentence | None:
    """The interquartile means, where several games are pooled."""
    if len(comparison.labels) < 2 or len(comparison.envs) < 2:
        return None
    ranked = sorted(comparison.labels, key=lambda label: -label.statistics["IQM"].value)
    scale = "human-normalised" if comparison.scale == "human" else "min–max-normalised"
    means = [(label.label, label.statistics["IQM"]) for label in ranked]
    listed = ", ".join(f"{name} {value.value:.2f}{interval(value)}" for name, value in means)
    head = f"Interquartile mean of the {scale} scores over {_games(comparison.envs)}:"
    return Sentence(head, f"{listed}.")


def _single_seed(pair: Pair) -> str:
    wins = sum(x > y for x, y in pair.means.values())
    if len(pair.means) > 1:
        return f"{pair.x} scored higher than {pair.y} on {wins} of {len(pair.means)} games"
    if wins == 0:
        return f"{pair.x} and {pair.y} scored alike on {pair.envs[0]}"
    return f"{pair.x} scored higher than {pair.y} on {pair.envs[0]}"


def _sureness(pair: Pair) -> str:
    if pair.single_seed and pair.smallest_p_value > LIKELY:
        return "With a single seed on a side this carries no confidence: another seed may turn it round."
    if pair.p_value < SURE:
        verdict = "this is very unlikely to be luck"
    elif pair.p_value < LIKELY:
        verdict = "this is unlikely to be luck"
    else:
        verdict = "this could well be luck"
    sentence = f"By a permutation test over {_seeds(pair)}{_a_game(pair)} {verdict} ({p_text(pair.p_value)})"
    if pair.smallest_p_value > LIKELY:
        once = round(1 / pair.smallest_p_value)
        sentence += f"; so few seeds cannot settle it: even a clean sweep comes by luck once in {once}"
    return sentence + "."


def _change(pair: Pair) -> str:
    """The mean score's percent change; over several games the median of the changes."""
    finite = [change for change in pair.changes().values() if math.isfinite(change)]
    if not finite:
        return ""
    whose = f"{pair.x}'s" if pair.probability.value == 0.5 else "its"
    if len(pair.means) == 1:
        return f"{whose} mean score is {_more(finite[0])}"
    higher = sum(x > y for x, y in pair.means.values())
    share = "" if pair.single_seed else f", and higher in {higher} of {len(pair.means)}"
    return f"{whose} mean score is {_more(median(finite))} in the median game{share}"


def _more(change: float) -> str:
    return f"{abs(change):.1f}% {'higher' if change >= 0 else 'lower'}"


def _games(envs: Sequence[str]) -> str:
    return envs[0] if len(envs) == 1 else f"{len(envs)} games"


def _seeds(pair: Pair) -> str:
    def side(seeds: tuple[int, int]) -> str:
        return f"{seeds[0]}" if seeds[0] == seeds[1] else f"{seeds[0]}–{seeds[1]}"

    if pair.seeds_x == pair.seeds_y:
        return "one seed each" if pair.seeds_x == (1, 1) else f"{side(pair.seeds_x)} seeds each"
    return f"{side(pair.seeds_x)} and {side(pair.seeds_y)} seeds"


def _a_game(pair: Pair) -> str:
    return f" on {len(pair.envs)} games" if pair.single_seed else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
