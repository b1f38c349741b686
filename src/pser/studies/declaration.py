"""What a study declares, in words: printed before it is run, and at the head of its report."""

from collections import Counter
from collections.abc import Callable

from pser.analysis.anatomy.arithmetic import replays_a_life
from pser.analysis.statistics.comparisons import SHOWN
from pser.analysis.statistics.power import smallest_shown
from pser.learner.settings import TrainSettings
from pser.studies.study import Contrast, Planned, Study

TEST = (
    "permutation test of the probability of improvement, runs shuffled between the two arms within each game, "
    "two-sided; Holm's correction over the contrasts of the study; a difference is called shown below 0.05"
)
INTERVAL = (
    "95% bootstrap interval (draws of one run less than there are, so that it holds over five games of three seeds; "
    "over fewer it is somewhat too narrow)"
)
GAIN = (
    "by how much the mean score is higher, as a share of what the study's best arm learned on that game (from where "
    "the learning curves begin, on average, to its mean), averaged over games, with its interval"
)
POWER = (
    "the true probability that a test of so many runs shows in four studies of five, if it is the same on every game; "
    "a smaller difference may well be there and not be shown"
)


SETTINGS: dict[str, Callable[[TrainSettings], str]] = {
    "environments": lambda one: f"{one.game.num_envs}",
    "batch": lambda one: f"{one.agent.batch_size}",
    "steps an update": lambda one: f"{one.agent.update_period_steps}",
    "replays of a transition": lambda one: (
        f"{replays_a_life(one.agent.batch_size, one.agent.update_period_steps):g}"
    ),
    "capacity": lambda one: f"{one.replay.capacity:,}",
    "β": lambda one: (
        f"{one.replay.beta:g}"
        + (f" → {one.replay.beta_end:g}" if one.replay.beta_end != one.replay.beta else "")
    ),
}
"""What sets studies of the same games apart → how it reads."""


def played(study: Study) -> str:
    """How its games are played and replayed; where arms or games differ in that, all values."""
    made = [
        study.settings_of(Planned(game, arm, study.first_seed)) for game in study.games for arm in study.arms
    ]
    return ", ".join(
        f"{name} {' or '.join(dict.fromkeys(read(one) for one in made))}" for name, read in SETTINGS.items()
    )


def declaration(study: Study) -> str:
    """All of it, as plain text."""
    width = max(len(arm.name) for arm in study.arms)
    lines = [
        f"{study.name}: {study.question}",
        f"  runs      {len(study.runs({}))}, about {study.core_hours:g} core-hours",
        f"  played    {played(study)}",
        f"  measure   {study.measure.about}",
        *(f"  test      {test}" for test in _tests(study)),
        *([f"  can show  {_can_show(study)}"] if study.contrasts else []),
        f"  stopping  {study.rule}",
        "  games",
    ]
    for game in study.games:
        take_off = "" if game.take_off is None else f", taken off above {game.take_off:g}"
        seeds = f"{game.seeds or study.seeds} seeds" + (
            f" from {study.first_seed} on" if study.first_seed else ""
        )
        lines.append(f"    {game.env}: {study.budget_frames(game):,} frames, {seeds}{take_off}")
    lines.append("  arms")
    for arm in study.arms:
        more = f" ({arm.seeds} seeds)" if arm.seeds else ""
        lines.append(f"    {arm.name:<{width}}  {arm.about}{more}")
    if study.contrasts:
        lines.append("  contrasts")
        lines += [f"    {_sides(contrast)}: {contrast.asks}" for contrast in study.contrasts]
    return "\n".join(lines)


def _sides(contrast: Contrast) -> str:
    pairs = ", ".join(f"{arm} and {against}" for arm, against in contrast.pairs)
    return f"{contrast.arm} against {contrast.against}" + (f" ({pairs}, together)" if pairs else "")


def _tests(study: Study) -> list[str]:
    return [*([TEST] if study.contrasts else []), *([study.tests] if study.tests else [])] or [
        "none: the study describes"
    ]


def _can_show(study: Study) -> str:
    """What difference the declared seeds would mostly show, over the contrasts."""
    runs = Counter((run.game.env, run.arm.name) for run in study.runs({}))
    level = SHOWN / len(study.contrasts)
    found = [
        smallest_shown(
            tuple(
                (runs[game.env, arm], runs[game.env, against])
                for arm, against in contrast.compared
                for game in study.games
            ),
            level,
        )
        for contrast in study.contrasts
    ]
    known = sorted({f"{value:.2f}" for value in found if value is not None})
    if not known:
        return "hardly any difference: declare more seeds or games, or fewer contrasts"
    least = known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"
    return f"a probability of improvement of {least} or more, in four studies of five"
