"""What a study declares, in words: printed before it is run, and at the head of its report."""

from pser.studies.study import Study

TEST = (
    "permutation test of the probability of improvement, runs shuffled between the two arms within each game, "
    "two-sided; Holm's correction over the contrasts of the study; a difference is called shown below 0.05"
)
INTERVAL = (
    "95% bootstrap interval (draws of one run less than there are, so that it holds over five games of three seeds; "
    "over fewer it is somewhat too narrow)"
)


def declaration(study: Study) -> str:
    """All of it, as plain text."""
    width = max(len(arm.name) for arm in study.arms)
    lines = [
        f"{study.name}: {study.question}",
        f"  runs      {len(study.runs({}))}, about {study.core_hours:g} core-hours",
        f"  measure   {study.measure.about}",
        f"  test      {TEST}" if study.contrasts else "  test      none: the study describes",
        f"  stopping  {study.stopping}",
        "  games",
    ]
    for game in study.games:
        take_off = "" if game.take_off is None else f", taken off above {game.take_off:g}"
        lines.append(
            f"    {game.env}: {study.budget_frames(game):,} frames, {game.seeds or study.seeds} seeds{take_off}"
        )
    lines.append("  arms")
    for arm in study.arms:
        more = f" ({arm.seeds} seeds)" if arm.seeds else ""
        lines.append(f"    {arm.name:<{width}}  {arm.about}{more}")
    if study.contrasts:
        lines.append("  contrasts")
        lines += [f"    {c.arm} against {c.against}: {c.asks}" for c in study.contrasts]
    return "\n".join(lines)
