"""A study's answer in sentences: what is shown, what is not, and how sure either is."""

from dataclasses import dataclass

from pser.analysis.statistics.comparisons import SHOWN
from pser.analysis.statistics.power import about
from pser.studies.results import Results, Tested


@dataclass(frozen=True)
class Told:
    """What a study says beyond its contrasts."""

    sentence: str
    """The answer, in one sentence."""
    details: str = ""
    """Tables and text below it, in Markdown."""


def answer(results: Results) -> str:
    """The study's answer in one sentence."""
    if not results.records:
        return "Not known yet: no run has finished."
    if results.study.tell is not None:
        return results.study.tell(results).sentence
    return of_contrasts(results)


def of_contrasts(results: Results) -> str:
    """What the tests of the declared contrasts say, in one sentence."""
    if not results.study.contrasts:
        return "No comparison is declared: see the measures."
    shown = [tested for tested in results.tested if tested.shown]
    open_ = [tested for tested in results.tested if tested.verdict == "too few runs"]
    untested = len(results.study.contrasts) - len(results.tested)
    level = len(results.tested) - len(shown) - len(open_)
    parts = [_ahead(tested) for tested in shown]
    if level:
        parts.append(f"no difference is shown in {level} of {len(results.study.contrasts)} comparisons")
    if open_ or untested:
        few = len(open_) + untested
        parts.append(f"{few} of {len(results.study.contrasts)} comparisons cannot be told from so few runs")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if results.whole else f"So far, {text}."


def _ahead(tested: Tested) -> str:
    arm, against = tested.contrast.arm, tested.contrast.against
    if tested.verdict == "lower":
        arm, against = against, arm
    return f"`{arm}` beats `{against}` (p = {tested.corrected:.2g}, corrected)"


def sentence(tested: Tested) -> str:
    """One contrast's answer, and how sure it is."""
    arm, against = tested.contrast.arm, tested.contrast.against
    chance = probability_text(tested)
    told = f"a run of {arm} scores higher than one of {against} with probability {chance}, gain {gain_text(tested)}"
    many = "pairs of arms and games" if tested.contrast.pairs else "games"
    scope = (
        f"{tested.runs} runs on {len(tested.games)} {many if len(tested.games) > 1 else 'game'}, "
        f"p = {tested.p_value:.2g}, corrected {tested.corrected:.2g}"
    )
    if tested.verdict == "higher":
        return f"Yes: {told} ({scope})."
    if tested.verdict == "lower":
        return f"No, the reverse: {told} ({scope})."
    if tested.verdict == "too few runs":
        once = round(1 / tested.smallest)
        return (
            f"Not known yet: even a clean sweep of these {tested.runs} runs would come by luck once in {once}; "
            f"so far the probability that {arm} scores higher is {chance}, gain {gain_text(tested)}."
        )
    return f"No difference shown: {told} ({scope}); {could_show(tested)}."


def without_seen(results: Results) -> str:
    """The comparisons without the seeds that had been seen when the study was declared; empty if there were none."""
    if not results.unseen:
        return ""
    seeds = results.study.seen_seeds
    which = "the first seed" if seeds == 1 else f"the first {seeds} seeds"
    told = "; ".join(
        f"*{tested.contrast.asks}* {verdict_text(tested).capitalize()}: {short_text(tested)}"
        for tested in results.unseen
    )
    return (
        f"When this study was declared, {which} of arms that it compares had been seen, and raised the question. "
        f"Without {which} of every game: {told}."
    )


def short_text(tested: Tested) -> str:
    """Probability and certainty, in few words."""
    return f"probability {probability_text(tested)}, p = {tested.corrected:.2g}"


def verdict_text(tested: Tested) -> str:
    """Yes, no, or what is not known, in few words."""
    return {"higher": "yes", "lower": "no, the reverse", "too few runs": "not known yet"}.get(
        tested.verdict, tested.verdict
    )


def probability_text(tested: Tested) -> str:
    """The probability of a higher score, and its interval where these runs can give one."""
    value = tested.probability
    interval = f" [{value.low:.2f}, {value.high:.2f}]" if has_interval(tested) else ""
    return f"{value.value:.2f}{interval}"


def gain_text(tested: Tested) -> str:
    """By how much the mean is higher, of what was learned, and its interval where these runs can give one."""
    gain = tested.gain
    if gain is None:
        return "–"
    interval = f" [{gain.low:+z.0%}, {gain.high:+z.0%}]" if gain_has_interval(tested) else ""
    return f"{gain.value:+z.0%}{interval}"


def could_show(tested: Tested) -> str:
    """What so many runs would have shown, and how many would show what was found."""
    value, seeds = tested.shown_from, tested.seeds_to_show
    now = (
        "so few runs would hardly show any"
        if value is None
        else f"so many runs would mostly show one of {value:.2f} (or {1 - value:.2f})"
    )
    if seeds is None or seeds <= tested.seeds:
        return now
    return f"{now}, {about(seeds)} seeds a game this one"


def shown_from_text(value: float | None) -> str:
    """The probability that would mostly be shown, in a table."""
    return "–" if value is None else f"{value:.2f}"


def has_interval(tested: Tested) -> bool:
    """Whether these runs can give an interval.

    Resampling a clean sweep, a single run of an arm on a game, or so few runs that no arrangement of them could show
    a difference, gives one that says more than the runs do.
    """
    return not tested.probability.collapsed and tested.seeds > 1 and tested.smallest < SHOWN


def gain_has_interval(tested: Tested) -> bool:
    """Whether these runs can give an interval of the gain: two of each arm on each game, that are not all alike."""
    return tested.gain is not None and tested.seeds > 1 and not tested.gain.collapsed
