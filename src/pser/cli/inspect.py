"""Show what is in a replay memory: one page that works offline.

$ pser inspect runs/breakout --out inspect.html
$ pser inspect memory.pser

The whole memory as a map of age and priority; how much of the mass came by decay; which episodes hold it, how often
each was replayed, and their steps with the observations beside them. A run's page has a slider through its
checkpoints and through what `pser train --inspect-period-frames N` noted.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which memory, how much of it, and where the page goes."""

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|MEMORY")]
    """A run's folder, a checkpoint, or a file that memory.save wrote."""
    out: Path = Path("inspect.html")
    """The page."""
    moments: int = 12
    """Of a run with more checkpoints and inspections, so many are shown."""
    picture_steps: int = 4_000
    """Of a saved memory, about so many transitions are shown with their observation."""
    title: str = "What the memory holds"
    """Heading of the page."""

    def __post_init__(self) -> None:
        if self.moments < 1:
            raise PserError(f"moments is at least 1, got {self.moments}: raise it")
        if self.picture_steps < 0:
            raise PserError(f"picture_steps is not negative, got {self.picture_steps}: use 0 for none")
        if self.out.is_dir():
            raise PserError(f"--out names a file; {self.out} is a folder: use {self.out / 'inspect.html'}")


def run(settings: Settings) -> None:
    """Read, write, and name the file to open."""
    from pser.analysis.inspect.sources import read_source

    began = time.monotonic()
    source = read_source(settings.path, moments=settings.moments, picture_steps=settings.picture_steps)
    try:
        from pser.analysis.inspect.page import render_page
    except ModuleNotFoundError as error:
        raise PserError(f"the page needs {error.name}: pip install 'pser[report]'") from error
    text = render_page(source, settings.title)
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    settings.out.write_text(text, encoding="utf-8")
    newest = source.moments[-1]
    moments = f"{len(source.moments)} moments" if len(source.moments) > 1 else "1 moment"
    for note in source.notes:
        print(f"note: {note}")
    print(
        f"written: {settings.out} ({moments}, {len(newest):,} transitions in the last, {len(text) / 1e6:.1f} MB, "
        f"{time.monotonic() - began:.1f} s): open it in a browser"
    )
