"""The page of findings from training: every study's question, answer, certainty and cost, from the records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from pser.analysis.markdown import table
from pser.studies.advice import what_to_take
from pser.studies.by_mass import Beside, beside_each_other, caveat, mass_table
from pser.studies.catalogue import NAMES, find_study
from pser.studies.conduct import read_records
from pser.studies.declaration import GAIN, INTERVAL, POWER, TEST, played
from pser.studies.pooled import otherwise, pooled, pooled_note, pooled_table, unfinished
from pser.studies.report import measure_table, progress, take_off_table, write_report
from pser.studies.results import Results, Tested, results_of
from pser.studies.sources import source_table
from pser.studies.standing import best_told, standing_table
from pser.studies.telling import (
    answer,
    gain_text,
    probability_text,
    sentence,
    short_text,
    verdict_text,
    without_seen,
)

START, END = "<!-- findings from training: start -->", "<!-- findings from training: end -->"
"""Between these lines other pages carry the summary."""
ADVISING = ("chain", "minatar", "insertion")
"""Studies that compare what a user may choose from."""
RECORDS = "results/studies"
"""Where the records are, and each study's own page."""
ASSETS, FIGURE, MASS_FIGURE = "assets", "findings", "findings-decay"
"""Where the figures of the page are, below docs, and their names."""


@dataclass(frozen=True)
class Findings:
    """What the studies say, one by one and together."""

    studies: Mapping[str, Results]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Those of every declared study, from the records below `folder`."""
        return cls({name: results_of(find_study(name), read_records(folder / name)) for name in NAMES})

    @property
    def begun(self) -> dict[str, Results]:
        """Those of studies that have records."""
        return {name: results for name, results in self.studies.items() if results.records}

    @cached_property
    def together(self) -> list[Tested]:
        """The questions that several studies answer together."""
        return pooled(self.studies)

    @property
    def deciding(self) -> list[Tested]:
        """The comparisons from which it follows what to take: those of studies together, and of each that is whole.

        What several studies ask, the last of them that is whole answers.
        """
        alone = {
            tested.contrast.asks: tested
            for results in self.studies.values()
            if results.whole
            for tested in results.tested
        }
        return [*self.together, *alone.values()]

    @cached_property
    def decay(self) -> list[Beside]:
        """Pairs of arms that differ in decay alone."""
        return beside_each_other(self.studies)


def summary_table(found: Mapping[str, Results], link: str = "") -> str:
    """Question, answer in one sentence and how much of the study is there, a line a study."""
    rows = [
        [
            f"[`{name}`]({link}#{name})",
            results.study.question,
            answer(results),
            f"{results.done} of {results.planned}",
            f"{results.core_hours:.1f}",
        ]
        for name, results in found.items()
    ]
    return table(["study", "question", "answer", "runs so far", "core-hours"], rows) + "\n"


def render(found: Findings) -> str:
    """The page, in Markdown."""
    parts = [
        HEAD,
        *(["## In short", in_short(found, ASSETS)] if found.together else []),
        *([BY_MASS, mass_table(found.decay), MASS_PICTURE] if found.decay else []),
        "## Studies",
        summary_table(found.studies),
        *(_section(name, results) for name, results in found.studies.items()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


BY_MASS = (
    "Decay, pair by pair: does it help more where it holds more of the sampling mass? (A description; what is tested "
    "stands above and in the studies.)"
)
MASS_PICTURE = f"![What decay brings, by the mass it holds]({ASSETS}/{MASS_FIGURE}.png)"
HEAD = f"""# Findings from training

When does PSER help, and what in it helps? Each study was declared before its runs (`pser study --list`); where it was
changed after first runs, or asks what earlier runs made one ask, it says so. This page
is written by `pser study --findings` from the records under `results/studies`, whatever they say; what is not
finished says so.

*How sure*: {TEST}. *Probability*: that a run of the first arm scores higher than one of the second on the same
game, averaged over games, with its {INTERVAL}. *Gain*: {GAIN}. *Would be shown from*: {POWER}. What the priorities are
made of is arithmetic: [anatomy](anatomy.md).
"""


def _section(name: str, results: Results) -> str:
    study = results.study
    parts = [f"## {name}", f"**{study.question}** {answer(results)}"]
    tests = f" Test: {study.tests}." if study.tests else ""
    parts.append(
        f"{progress(results)} Played with: {played(study)}. Measure: {study.measure.about}.{tests} "
        f"Stopping rule: {study.rule}."
    )
    told = {tested.contrast: sentence(tested) for tested in results.tested}
    if study.contrasts and results.records:
        parts.append(
            "\n".join(
                f"- *{contrast.asks}* {told.get(contrast, 'Not known yet: no runs of both arms on one game.')}"
                for contrast in study.contrasts
            )
        )
    if told_new := without_seen(results):
        parts.append(told_new)
    if results.records:
        if study.tell is not None:
            parts.append(study.tell(results).details)
        parts.append(measure_table(results))
        ranked = standing_table(results)
        if ranked:
            parts += ["Which ranks highest:", ranked]
        if any(cell.taken_off for cell in results.cells.values()):
            parts += ["Runs that took off:", take_off_table(results)]
        sources = source_table(results)
        if sources:
            parts += ["Where the sampling mass came from, at the end of the runs:", sources]
        folder = f"../{RECORDS}/{name}/figures"
        parts += [f"![{figure} of {name}]({folder}/{figure}.png)" for figure in study.figures]
        parts += [f"![Each run of {name}]({folder}/measures.png)", _more(name)]
    if results.notes:
        parts.append("\n".join(f"- To keep in mind: {note}." for note in results.notes))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _more(name: str) -> str:
    page = f"../{RECORDS}/{name}/README.md"
    return f"*A dot a run. Learning curves, arms and a list of the runs: [study `{name}`]({page}).*"


def in_short(found: Findings, assets: str) -> str:
    """What to take, and why: the questions that studies answer together, and what single ones have settled."""
    if not found.together:
        return ""
    alone = shown_alone(found.studies)
    best = [
        f"In `{name}`: {told}"
        for name in ADVISING
        if name in found.studies and (told := best_told(found.studies[name]))
    ]
    table = pooled_table(found.together, otherwise(found.studies))
    parts = [
        what_to_take(found.deciding),
        _picture(assets),
        pooled_note(found.studies),
        table,
        caveat(found.decay),
    ]
    parts += [SHOWN_ALONE, alone] if alone else []
    return "\n\n".join(part for part in (*parts, *best) if part)


def in_few_words(found: Findings, assets: str) -> str:
    """What to take, with the picture of it, and which studies go on."""
    if not found.together:
        return ""
    return "\n\n".join((what_to_take(found.deciding), _picture(assets), unfinished(found.studies))).strip()


def _picture(assets: str) -> str:
    return f"![The questions that studies answer together, with the chance of a higher score]({assets}/{FIGURE}.png)"


SHOWN_ALONE = "What whole studies have shown, each on its own games (p corrected for all that it compares):"


def shown_alone(found: Mapping[str, Results]) -> str:
    """The comparisons that single studies have settled, a line each; empty as long as there is none."""
    return "\n".join(
        f"- {tested.contrast.asks} {verdict_text(tested).capitalize()}: probability {probability_text(tested)}, "
        f"gain {gain_text(tested)}, p = {tested.corrected:.2g} (`{name}`).{_qualified(found, name, tested)}"
        for name, results in found.items()
        if results.whole
        for tested in results.tested
        if tested.shown
    )


def _qualified(found: Mapping[str, Results], name: str, tested: Tested) -> str:
    """What to weigh it against: itself without the seeds that made one ask, and the same arms in other studies."""
    told = []
    new = found[name].without_seen(tested)
    if new is not None:
        told.append(f" Without the runs that raised the question: {short_text(new)}.")
    told += [
        f" In `{other}`: {short_text(one)}."
        for other, results in found.items()
        if other != name
        for one in results.tested
        if one.contrast.compared == tested.contrast.compared
    ]
    return "".join(told)


def in_full(found: Findings, link: str, assets: str) -> str:
    """What studies answer together, and what each says."""
    begun = found.begun
    parts = [in_short(found, assets), summary_table(begun, link) if begun else ""]
    waiting = [f"[`{name}`]({link}#{name})" for name in found.studies if name not in begun]
    if waiting:
        parts.append(f"Declared, without a run so far: {', '.join(waiting)}.")
    return "\n\n".join(part.strip() for part in parts if part)


def put_between_marks(text: str, summary: str) -> str:
    """A page with the summary put between its two marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{summary}\n\n{END}{after}"


PAGES: dict[str, Callable[[Findings], str]] = {
    "README.md": lambda found: in_few_words(found, f"docs/{ASSETS}"),
    "docs/results.md": lambda found: in_short(found, ASSETS),
    "docs/how-to/choosing.md": lambda found: in_full(found, "../findings-training.md", f"../{ASSETS}"),
}
"""Pages that carry a summary → what they say."""


def write_findings(root: Path) -> Iterator[Path]:
    """Write the reports of all studies with records, the page of findings and its figure, and other pages' summaries.

    All below `root`; each path comes when it is written.
    """
    kept = root / RECORDS
    found = Findings.read(kept)
    for name, results in found.begun.items():
        yield write_report(results, kept / name)
    page = root / "docs" / "findings-training.md"
    page.write_text(render(found))
    yield page
    if found.together:
        from pser.studies.figures import draw_pooled

        yield from draw_pooled(found.together, root / "docs" / ASSETS, FIGURE)
    if found.decay:
        from pser.studies.figures import draw_by_mass

        yield from draw_by_mass(found.decay, root / "docs" / ASSETS, MASS_FIGURE)
    for name, summarize in PAGES.items():
        text = (root / name).read_text()
        if START in text:
            (root / name).write_text(put_between_marks(text, summarize(found)))
            yield root / name
