"""The report of a study: one Markdown page with tables and figures, written from the records alone."""

import csv
import io
from pathlib import Path

from pser.analysis.markdown import table
from pser.files.atomic import write_text
from pser.studies.advice import what_to_take
from pser.studies.cells import Cell
from pser.studies.declaration import GAIN, INTERVAL, POWER, TEST, played
from pser.studies.results import Results, Tested
from pser.studies.sources import source_table
from pser.studies.standing import STANDING, standing_table
from pser.studies.study import Arm, Contrast, Game
from pser.studies.telling import answer, gain_text, probability_text, shown_from_text, without_seen


def write_report(results: Results, folder: Path) -> Path:
    """Write README.md and its figures into the study's folder; the page's path."""
    from pser.studies.figures import draw_figures

    folder.mkdir(parents=True, exist_ok=True)
    figures: list[Path] = []
    if results.records:
        for name, draw in results.study.figures.items():
            figures += draw(results, folder / "figures", name)
        figures += draw_figures(results, folder / "figures")
    write_text(folder / "runs.csv", runs_csv(results))
    page = folder / "README.md"
    page.write_text(render(results, [path.relative_to(folder).as_posix() for path in figures]))
    return page


def runs_csv(results: Results) -> str:
    """One line a run: where it was, what it measured, what it cost."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("game", "arm", "seed", results.study.measure.name, "frames", "cpu_seconds", "commit"))
    for record in results.records.values():
        value = results.study.measure.compute(record.curve)
        measured = "" if value is None else f"{value:.6g}"
        writer.writerow(
            (
                record.env,
                record.arm,
                record.seed,
                measured,
                record.final["frames"],
                record.cpu_seconds,
                record.commit,
            )
        )
    return text.getvalue()


def render(results: Results, figures: list[str]) -> str:
    """The page."""
    study = results.study
    parts = [
        f"# Study: {study.name}",
        f"**{study.question}**",
        f"{progress(results)} Written by `pser study {study.name} --report` from the records beside this page; "
        "[runs.csv](runs.csv) has a line for each.",
        "## Answers",
        answer(results),
        *([study.tell(results).details] if study.tell and results.records else []),
        *([tested_table(results)] if study.contrasts else []),
        *([told] if (told := without_seen(results)) else []),
        *([advice] if results.whole and (advice := what_to_take(results.tested)) else []),
        _method(results),
        "## To keep in mind",
        "\n".join(f"- {note}" for note in (*results.notes, f"stopping rule: {study.rule}")),
        "## Measure of each arm",
        measure_table(results),
        "Mean ± standard error over seeds (number of seeds); – where no run has finished.",
    ]
    ranked = standing_table(results)
    if ranked:
        parts += ["### Which ranks highest", ranked, STANDING]
    if any(cell.taken_off for cell in results.cells.values()):
        parts += ["### Runs that took off", take_off_table(results), TAKE_OFF]
    sources = source_table(results)
    if sources:
        parts += ["## Where the sampling mass comes from", sources, SOURCES]
    parts += [f"![{Path(figure).stem}]({figure})" for figure in figures if figure.endswith(".png")]
    parts += [
        "## Arms",
        table(["arm", "what it is"], [[arm.name, arm.about] for arm in shown_arms(results)]) + "\n",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _method(results: Results) -> str:
    """How the numbers were made."""
    study = results.study
    parts = [f"*Played with*: {played(study)}.", f"*Measure*: {study.measure.about}."]
    if study.contrasts:
        parts.append(
            f"*Test*: {TEST}. *Probability*: that a run of the first arm scores higher than one of the second on the "
            f"same game, averaged over games, with its {INTERVAL}; none where the runs are too few for one, or swept "
            f"clean. *Gain*: {GAIN}. *Would be shown from*: {POWER}."
        )
    if study.tests:
        parts.append(f"*Test*: {study.tests}.")
    return " ".join(parts)


TAKE_OFF = "Runs whose measure is above the line, and the 95% interval of their share (Clopper and Pearson)."
SOURCES = (
    "Shares of the sampling mass at the end of the runs, means over all games and seeds: never replayed since "
    "insertion, kept by η, set by the transition's own TD error, handed down by backward decay. ESS: effective "
    "sample size as a share of the memory."
)


def progress(results: Results) -> str:
    """How much of the study is there, and what it cost."""
    planned = results.planned
    runs = f"All {planned} runs" if results.whole else f"{results.done} of {planned} runs so far"
    added = f" and {results.added} more than are declared" if results.added else ""
    return f"{runs}{added}, {results.core_hours:.1f} core-hours."


def tested_table(results: Results) -> str:
    """The contrasts, one line each."""
    header = ["question", "arms", "verdict", "probability", "gain", "p (corrected)", "would be shown from"]
    header += ["games ahead", "seeds"]
    told = {tested.contrast: _tested_row(tested) for tested in results.tested}
    rows = [
        told.get(contrast, [contrast.asks, _arms(contrast), "no runs yet", *["–"] * 6])
        for contrast in results.study.contrasts
    ]
    return table(header, rows) + "\n"


def _arms(contrast: Contrast) -> str:
    return f"{contrast.arm} against {contrast.against}"


def _tested_row(tested: Tested) -> list[str]:
    return [
        tested.contrast.asks,
        _arms(tested.contrast),
        tested.verdict,
        probability_text(tested),
        gain_text(tested),
        f"{tested.p_value:.3f} ({tested.corrected:.3f})",
        shown_from_text(tested.shown_from),
        f"{tested.wins} of {len(tested.games)}",
        str(tested.seeds),
    ]


def measure_table(results: Results) -> str:
    """Arms down, games across."""
    study = results.study
    rows = [
        [arm.name, *(_mean_text(results.cells[game.env, arm.name]) for game in study.games)]
        for arm in shown_arms(results)
    ]
    return table(["arm", *(short_name(game.env) for game in study.games)], rows) + "\n"


def shown_arms(results: Results) -> list[Arm]:
    """The arms that have runs; all of them as long as none has."""
    with_runs = {record.arm for record in results.records.values()}
    return [arm for arm in results.study.arms if arm.name in with_runs or not with_runs]


def shown_games(results: Results) -> list[Game]:
    """The games that have runs; all of them as long as none has."""
    with_runs = {record.env.casefold() for record in results.records.values()}
    return [game for game in results.study.games if game.env.casefold() in with_runs or not with_runs]


def short_name(env: str) -> str:
    """The game without its family."""
    return env.rpartition(":")[2].removeprefix("pser/")


def _mean_text(cell: Cell) -> str:
    count = len(cell.values)
    if not count:
        return "–"
    error = f" ± {cell.error:.2g}" if count > 1 else ""
    return f"{cell.mean:.3g}{error} ({count})"


def take_off_table(results: Results) -> str:
    """Share of runs that took off, where a game has a line."""
    games = [game for game in results.study.games if game.take_off is not None]
    rows = []
    for arm in shown_arms(results):
        shares = [results.cells[game.env, arm.name] for game in games]
        rows.append([arm.name, *(_share_text(cell) for cell in shares)])
    header = ["arm", *(f"{short_name(game.env)} > {game.take_off:g}" for game in games)]
    return table(header, rows) + "\n"


def _share_text(cell: Cell) -> str:
    share = cell.taken_off
    if share is None:
        return "–"
    hits = round(share.value * len(cell.values))
    return f"{hits} of {len(cell.values)} [{share.low:.2f}, {share.high:.2f}]"
