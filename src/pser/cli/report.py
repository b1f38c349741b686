"""Compare training runs: one self-contained HTML page, or Markdown with figures.

RUNS are run folders or folders of runs at any depth. The page works offline, in light and dark; it says in
words who wins, by how much and how sure that is, and shows learning curves, tables, priority diagnostics and
how to repeat each run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from pser.cli.parsing import UNSET
from pser.errors import PserError

if TYPE_CHECKING:
    from pser.analysis.report.build import Report


FORMATS: dict[str, Literal["html", "md"]] = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}
"""What a file that ends so is taken for."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which runs, how they are compared, and what is written."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Run folders, or folders that hold runs."""
    out: Annotated[Path | None, UNSET] = None
    """File to write; by default report.html or report.md here."""
    format: Annotated[Literal["html", "md"] | None, UNSET] = None
    """A page to open, or Markdown with figures; by default what OUT ends in, and else a page."""
    figures: Annotated[Path | None, UNSET] = None
    """Folder for PNG and SVG figures; Markdown takes the folder OUT_figures by default, HTML writes none."""
    smooth_frames: Annotated[int | None, UNSET] = None
    """Moving average of the curves in frames, 0 for none; default: 5% of the longest run, as the paper."""
    at_frames: Annotated[int | None, UNSET] = None
    """Score every run after so many frames; default: what most runs of every label have."""
    score: Literal["final", "best"] = "final"
    """Score that stands for a run: the last evaluations, or the best snapshot (as in the paper's table)."""
    published: bool = True
    """Lay what others published (Dopamine's Atari runs, MinAtar runs) beside the runs of the same game."""
    resamples: int = 2000
    """Bootstrap resamples behind the intervals."""
    seed: int = 0
    """Seed of the bootstrap."""
    title: str = "Replay report"
    """Heading of the report."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise PserError(
                "a report needs at least one run folder; got none: pser report RUNS… --out report.html"
            )
        if self.resamples < 1:
            raise PserError(f"resamples is at least 1; got {self.resamples}: use 1000 or more")
        if self.at_frames is not None and self.at_frames < 1:
            raise PserError(f"at_frames is at least 1; got {self.at_frames}: name the frames to compare at")
        if self.smooth_frames is not None and self.smooth_frames < 0:
            raise PserError(f"smooth_frames is not negative; got {self.smooth_frames}: use 0 for none")
        ending = None if self.out is None else FORMATS.get(self.out.suffix.lower())
        if self.format is not None and ending not in (None, self.format):
            raise PserError(
                f"--out ends as {ending}, got --format {self.format}: rename it or leave --format out"
            )
        object.__setattr__(self, "format", self.format or ending or "html")
        if self.seed < 0:
            raise PserError(f"seed is not negative; got {self.seed}: use 0 or more")


def run(settings: Settings) -> None:
    """Read, compare, write, and name the file to open."""
    from pser.analysis.report.build import ReportSettings, build_report

    out = settings.out or Path(f"report.{settings.format}")
    if out.is_dir():
        raise PserError(f"--out names a file; {out} is a folder: use {out / f'report.{settings.format}'}")
    how = ReportSettings(
        smooth_frames=settings.smooth_frames,
        at_frames=settings.at_frames,
        score=settings.score,
        resamples=settings.resamples,
        seed=settings.seed,
        published=settings.published,
        title=settings.title,
    )
    report = build_report(settings.runs, how)
    folder = settings.figures
    if folder is None and settings.format == "md":
        folder = out.with_name(f"{out.stem}_figures")
    drawn = _figures(report, folder) if folder else []
    text = _page(report) if settings.format == "html" else _markdown(report, drawn, out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    for sentence in report.sentences:
        print(sentence)
    for note in report.notes:
        print(f"note: {note}")
    if drawn:
        print(f"figures: {folder} ({len(drawn)} files)")
    print(f"written: {out}" + (" (open it in a browser)" if settings.format == "html" else ""))


def _figures(report: "Report", folder: Path) -> list[Path]:
    try:
        from pser.analysis.report.figures import draw_report_figures
    except ModuleNotFoundError as error:
        raise PserError(f"figures need {error.name}: pip install 'pser[plot]'") from error
    return draw_report_figures(report, folder)


def _page(report: "Report") -> str:
    try:
        from pser.analysis.report.html import render_html
    except ModuleNotFoundError as error:
        raise PserError(f"the page needs {error.name}: pip install 'pser[report]'") from error
    return render_html(report)


def _markdown(report: "Report", drawn: list[Path], beside: Path) -> str:
    from pser.analysis.report.markdown import render_markdown

    return render_markdown(report, drawn, beside)
