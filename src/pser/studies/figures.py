"""The figures of a study: learning curves, each run's measure, mass by source; and those of all studies together."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from pser.analysis.anatomy.figures import draw_shares
from pser.analysis.colours import BLACK, NOTE, PALETTE, RULE
from pser.analysis.report.curves import over_seeds, shared_frames
from pser.analysis.report.runs import Series
from pser.analysis.style import count_frames, count_percent, new_figure, new_grid, save, shared_legend
from pser.studies.by_mass import Beside
from pser.studies.measures import running_mean
from pser.studies.pooled import QUESTIONS, studies_of, study_of
from pser.studies.report import short_name, shown_arms, shown_games
from pser.studies.results import Results, Tested
from pser.studies.sources import shares_by_arm
from pser.studies.study import Arm
from pser.studies.telling import gain_has_interval, has_interval, verdict_text


def draw_figures(results: Results, folder: Path) -> list[Path]:
    """Write them as PNG and SVG."""
    shares = shares_by_arm(results)
    sources = draw_shares(list(shares.items()), folder, "sources") if shares else []
    return [*_curves(results, folder), *_measures(results, folder), *sources]


FIXED = {"pser": PALETTE[0], "per": PALETTE[1], "uniform": PALETTE[2]}
"""As everywhere: PSER orange, PER blue, uniform green."""


def looks(arms: Sequence[Arm]) -> dict[str, tuple[str, str]]:
    """Arm → colour and line; where colours run out, lines are dashed, then dotted."""
    free = [colour for colour in PALETTE if colour not in FIXED.values()]
    styles = [
        (colour, line) for line in ("-", "--", ":", "-.") for colour in (free if line == "-" else PALETTE)
    ]
    others = [arm.name for arm in arms if arm.name not in FIXED]
    found = {name: styles[number % len(styles)] for number, name in enumerate(others)}
    return found | {name: (colour, "-") for name, colour in FIXED.items()}


def _curves(results: Results, folder: Path) -> list[Path]:
    games, arms = shown_games(results), shown_arms(results)
    styles = looks(arms)
    figure, panels = new_grid(len(games), 3, 3.6, 2.6)
    for game, axes in zip(games, panels, strict=True):
        for arm in arms:
            series = [
                Series(*np.array(running_mean(record.curve)).reshape(-1, 2).T)
                for record in results.records.values()
                if record.arm == arm.name and record.env.casefold() == game.env.casefold()
            ]
            series = [one for one in series if len(one)]
            if not series:
                continue
            named = {str(number): one for number, one in enumerate(series)}
            curve = over_seeds(arm.name, named, shared_frames(series))
            if curve is not None:
                colour, line = styles[arm.name]
                axes.plot(shared_frames(series), curve.mean, line, color=colour, lw=1.2, label=arm.name)
        axes.set_title(short_name(game.env))
        axes.set_xlabel("frames")
        count_frames(axes)
    panels[0].set_ylabel("training return\n(running mean over a tenth,\nmean over seeds)")
    shared_legend(figure, panels, 5)
    return save(figure, folder, "curves")


def _measures(results: Results, folder: Path) -> list[Path]:
    """A dot a run, a bar at the mean."""
    styles = looks(shown_arms(results))
    games, arms = shown_games(results), shown_arms(results)
    figure, panels = new_grid(len(games), 3, 3.6, 0.5 + 0.22 * len(arms) + 0.6)
    for game, axes in zip(games, panels, strict=True):
        for number, arm in enumerate(arms):
            cell = results.cells[game.env, arm.name]
            colour, _ = styles[arm.name]
            axes.plot(cell.values, np.full(len(cell.values), number), "o", ms=3.5, color=colour, alpha=0.7)
            if len(cell.values):
                axes.plot([cell.mean], [number], "|", ms=12, mew=2, color=colour)
        axes.set_yticks(range(len(arms)), [arm.name for arm in arms], fontsize=7)
        axes.set_ylim(len(arms) - 0.5, -0.5)
        axes.set_title(short_name(game.env))
        axes.set_xlabel("measure of a run")
        axes.grid(True, axis="x")
    return save(figure, folder, "measures")


def _study_colours(studies: Sequence[str]) -> dict[str, str]:
    """Study → colour, the same in all figures for those that are in several."""
    of_questions = [study for question in QUESTIONS for study, _, _ in question.pairs]
    ordered = dict.fromkeys([*of_questions, *sorted(set(studies))])
    colours = dict(zip(ordered, PALETTE, strict=False))
    return {study: colours[study] for study in ordered if study in set(studies)}


def draw_pooled(tested: Sequence[Tested], folder: Path, name: str) -> list[Path]:
    """A line a question: a dot a game, coloured by its study, and over all of them a diamond with its interval."""
    colours = _study_colours(studies_of(tested))
    figure, axes = new_figure(8.0, 1.0 + 0.42 * len(tested))
    rng = np.random.default_rng(0)
    for row, one in enumerate(tested):
        for game, value in zip(one.games, one.by_game, strict=True):
            height = row + 0.28 * rng.uniform(-1, 1)  # equal values stay apart
            axes.plot([value], [height], "o", ms=3, alpha=0.5, mew=0, color=colours[study_of(game)])
        pooled = one.probability
        if has_interval(one):
            axes.plot([pooled.low, pooled.high], [row, row], color=BLACK, lw=1.6)
        axes.plot([pooled.value], [row], "D", ms=6, color=BLACK)
        told = f"{verdict_text(one)} (p = {one.corrected:.2g})"
        if one.gain is not None:
            told += f"\ngain {one.gain.value:+z.0%}"
        axes.text(1.03, row, told, va="center", fontsize=7, color=NOTE)
    for study, colour in colours.items():
        axes.plot([], [], "o", ms=4, color=colour, label=f"a game of {study}")
    interval = ", 95% interval" if any(map(has_interval, tested)) else ""
    axes.plot([], [], "D", ms=5, color=BLACK, label=f"over all games{interval}")
    axes.axvline(0.5, color=RULE, lw=0.8)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(len(tested) - 0.5, -0.5)
    axes.set_yticks(range(len(tested)), [fill(one.contrast.asks, 42) for one in tested], fontsize=8)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.set_xlabel(
        "← scores lower with it        probability that a run with it scores higher        higher →"
    )
    figure.legend(loc="outside upper center", ncols=len(colours) + 1, fontsize=8, frameon=False)
    return save(figure, folder, name)


def draw_by_mass(pairs: Sequence[Beside], folder: Path, name: str) -> list[Path]:
    """A line a pair of arms that differ in decay alone, from the one in which it holds most: what it brings."""
    known = [one for one in pairs if one.tested.gain is not None]
    colours = _study_colours([one.pair[0] for one in known])
    figure, axes = new_figure(7.5, 1.0 + 0.36 * len(known))
    for row, one in enumerate(known):
        gain, colour = one.tested.gain, colours[one.pair[0]]
        assert gain is not None
        if gain_has_interval(one.tested):
            axes.plot([gain.low, gain.high], [row, row], color=colour, lw=1.6)
        axes.plot([gain.value], [row], "D", ms=6, color=colour)
        axes.annotate(
            f"decay holds {one.share:.1%}", (1.02, row), xycoords=("axes fraction", "data"), va="center",
            fontsize=7, color=NOTE, annotation_clip=False,
        )  # fmt: skip
    for study, colour in colours.items():
        axes.plot([], [], "D", ms=5, color=colour, label=f"study {study}")
    axes.axvline(0.0, color=RULE, lw=0.8)
    names = [f"{arm}\nagainst {other}" for _, arm, other in (one.pair for one in known)]
    axes.set_yticks(range(len(known)), names, fontsize=7)
    axes.set_ylim(len(known) - 0.5, -0.5)
    count_percent(axes)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.set_xlabel("gain by decay, of what the study's best arm learned; 95% interval where seeds allow one")
    figure.legend(loc="outside upper center", ncols=len(colours), fontsize=8, frameon=False)
    return save(figure, folder, name)
