"""The studies by name; a user's own is a Python file that declares `STUDY`."""

import importlib.util
from importlib import import_module
from pathlib import Path

from pser.errors import PserError
from pser.studies.study import Planned, Study

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
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise PserError(f"{path} is not Python, line {error.lineno}: {error.msg}") from None
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise PserError(
            f"{path} must declare STUDY = pser.studies.study.Study(...), got {study!r}: see docs/studies.md"
        )
    for game in study.games:
        for arm in study.arms:
            _refuse_bad_settings(study, Planned(game, arm, study.first_seed))
    return study


def _refuse_bad_settings(study: Study, run: Planned) -> None:
    """Raise with the name of the run if there is no training with its settings."""
    try:
        study.settings_of(run)
    except PserError as error:
        raise PserError(f"{run.arm.name!r} on {run.game.env} of the study {study.name!r}: {error}") from None
