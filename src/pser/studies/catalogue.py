"""The studies by name; a user's own is a Python file that declares `STUDY`."""

import importlib.util
from importlib import import_module
from pathlib import Path

from pser.errors import PserError
from pser.studies.study import Study

NAMES = (
    "check",
    "check-again",
    "epsilon",
    "chain",
    "minatar",
    "insertion",
    "beta",
    "sharpness",
    "anatomy",
    "tune",
    "remedies",
    "confirm",
    "rainbow",
    "rainbow-parts",
    "apex",
)
"""Modules of this package that declare a `STUDY`, in the order in which they are told."""


def find_study(name: str) -> Study:
    """The study of that name, or the one that the named Python file declares."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in NAMES:
        raise PserError(
            f"no study {name!r}: choose one of {', '.join(NAMES)}, or name a Python file of yours"
        )
    study = import_module(f"pser.studies.{name.replace('-', '_')}").STUDY
    assert isinstance(study, Study)
    return study


def _from_file(path: Path) -> Study:
    if not path.is_file():
        raise PserError(f"there is no file {path}: name a Python file that declares STUDY")
    spec = importlib.util.spec_from_file_location(f"pser_study_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise PserError(
            f"{path} must declare STUDY = pser.studies.study.Study(...), got {study!r}: see docs/studies.md"
        )
    return study
