"""One line for whoever trains with settings that leave backward decay next to nothing."""

from pser.analysis.anatomy.arithmetic import Surprises, replays_a_life, shrinking_insertion_share
from pser.learner.settings import TrainSettings
from pser.memory.prioritization import PSER

TOO_MUCH = 0.8
"""Share of the mass ruled by insertion above which decay has next to none."""


def decay_note(settings: TrainSettings) -> str | None:
    """What to say of a run's settings, if anything."""
    rule = settings.replay.prioritization
    if (
        not isinstance(rule, PSER)
        or rule.reach == 0
        or rule.retain != "all"
        or settings.replay.initial == "td"
    ):
        return None
    replays = replays_a_life(settings.agent.batch_size, settings.agent.update_period_steps)
    share = shrinking_insertion_share(Surprises(), rule.eta, replays)
    if share <= TOO_MUCH:
        return None
    return (
        f"note: with eta {rule.eta:g} and {replays:g} replays a transition, about {100 * share:.0f}% of the sampling "
        "mass stems from insertion, so decay does next to nothing: --initial td, --eta 0.3 or --retain decayed give "
        "it room (docs/anatomy.md)"
    )
