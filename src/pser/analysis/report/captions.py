"""What the report says under its tables and charts."""

from pser.analysis.report.build import Report
from pser.analysis.report.metrics import MASS_SOURCES


def subtitle(report: Report) -> str:
    """What was read, in a line."""
    started = sorted(str(run.manifest.get("started", ""))[:10] for run in report.runs.runs)
    dates = sorted({date for date in started if date})
    when = (
        f", started {dates[0]}"
        if len(dates) == 1
        else f", started {dates[0]} to {dates[-1]}"
        if dates
        else ""
    )
    runs, envs = len(report.runs.runs), len(report.runs.envs)
    return f"{runs} run{'s' * (runs != 1)}, {envs} game{'s' * (envs != 1)}{when}"


def scores_caption(report: Report) -> str:
    """What final, best and the others mean."""
    text = (
        f"Final: mean of the evaluations in the last {report.window_frames:,.0f} of the frames given, averaged "
        "over seeds. Best snapshot: the highest single evaluation of each run, averaged over seeds; chosen by "
        "its own luck, so a little too high."
    )
    scores = [score for board in report.board.boards for score in board.scores]
    if any(score.reevaluated is not None for score in scores):
        text += " Re-evaluated: that snapshot over fresh episodes (pser evaluate)."
    if any(board.human for board in report.board.boards):
        text += (
            " Human-normalised: the final score between random (0%) and human play (100%), where the paper's "
            "table has both."
        )
    return text


def pairs_caption(report: Report) -> str:
    """What the test is, and what it cannot say."""
    count = len(report.comparison.pairs)
    corrected = (
        f" Corrected: by Holm's method for the {count} comparisons of this page; the verdict goes by it, "
        "below 0.05."
        if count > 1
        else " A difference is called shown below 0.05."
    )
    return (
        "P: how often a run of the first scores higher than a run of the second on the same game, averaged over "
        "their common games; in brackets its 95% bootstrap interval, left out where the seeds are too few for "
        "one (Agarwal et al. 2021). p: how often luck alone would separate the seeds so far (permutation test)."
        f"{corrected} No difference shown does not mean that there is none."
    )


def curves_caption(report: Report) -> str:
    """What line and band are."""
    smooth = (
        f"a moving average over {report.window_frames:,.0f} frames (the paper: 10M of 200M)"
        if report.window_frames > 0
        else "no smoothing"
    )
    return f"Line: mean over seeds, with {smooth}. Band: lowest to highest seed."


def published_captions(report: Report) -> list[str]:
    """Where the published figures come from, and what differs there."""
    return [
        f"Published figures, {source.name}: {source.what}; {source.spread}. What differs there: "
        f"{'; '.join(source.differs)}."
        for source in report.sources()
    ]


def mass_caption() -> str:
    """What the four shares are."""
    listed = "; ".join(f"{source.title}: {source.help}" for source in MASS_SOURCES)
    return f"At the end of the runs, mean over seeds; the four sum to 1. {listed[0].upper()}{listed[1:]}."


def aggregates_caption(report: Report) -> str:
    """The scale and the intervals of the pooled scores."""
    scale = (
        "human-normalised scores (0 is random, 1 is human play)"
        if report.comparison.scale == "human"
        else "scores scaled by the lowest and highest value any run reached on that game (0 to 1)"
    )
    games = (
        ", ".join(report.comparison.envs)
        if len(report.comparison.envs) <= 6
        else f"{len(report.comparison.envs)} games"
    )
    return (
        f"Over {games}: {scale}. IQM: mean of the middle half of all runs; optimality gap: shortfall from 1, "
        f"less is better (Agarwal et al. 2021). In brackets: 95% interval of {report.settings.resamples:,} "
        "stratified bootstrap resamples of the seeds, too narrow with few of them; none where a game has a "
        "single seed."
    )
