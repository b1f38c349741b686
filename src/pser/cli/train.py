"""Train a DQN agent with any replay strategy on Atari, MinAtar or a Gymnasium game.

$ pser train minatar:breakout --replay pser --frames 1000000 --run-dir runs/breakout
$ pser train --resume runs/breakout
$ pser train --from-run runs/breakout/manifest.json --seed 1 --run-dir runs/breakout-1
$ pser train minatar:breakout --preset apex --engine ray --actors 4 --run-dir runs/apex
"""

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pser.cli.parsing import UNSET, as_flag
from pser.cli.settings_text import settings_lines, text_width
from pser.cli.train_engine import ENGINE_FLAGS, EngineFlags, engine_of, is_given, resumed_engine
from pser.cli.train_flags import (
    AGENT_NAMES,
    PRESET,
    flags_class,
    given_flags,
    parse_flags,
    refuse_unfit_preset,
    refuse_without_effect,
    shorten_evaluation,
)
from pser.errors import PserError, require
from pser.learner.family import run_label, switches
from pser.learner.settings import TrainSettings
from pser.run.progress import Progress, make_progress

LEFT_OUT = frozenset({"env"})


@dataclass(frozen=True, kw_only=True)
class _Start:
    """Where a run starts, and where it is kept."""

    env: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="GAME", help_behavior_hint="")] = (
        None
    )
    """The game: atari:NAME, minatar:NAME or gym:ID (not with --resume)."""
    preset: Annotated[str | None, PRESET] = None
    """The settings to start from; by default paper on Atari, minatar on MinAtar, classic elsewhere."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint=AGENT_NAMES)] = None
    """The agent: sets --double-q, --dueling, --n-step, --loss and --noisy together (the preset's if not given)."""
    run_dir: Annotated[Path | None, UNSET] = None
    """The folder of the run; by default runs/GAME/LABEL/seed-SEED."""
    resume: Annotated[Path | None, UNSET] = None
    """Continue the run in this folder, with its own settings."""
    extend: Annotated[int | None, tyro.conf.arg(metavar="FRAMES", help_behavior_hint="")] = None
    """With --resume: train this many frames more than the run was to have, also if it is finished."""
    from_run: Annotated[Path | None, UNSET] = None
    """Start from the settings of another run (its folder or manifest.json) instead of a preset's."""
    trust_imports: bool = False
    """Let the manifest of --resume or --from-run import Python modules (gym:MODULE:ID, --network MODULE:CLASS)."""


@dataclass(frozen=True, kw_only=True)
class _Own(EngineFlags, _Start):
    """What is said once per run; every other flag changes one setting of the preset."""


Settings: type[Any] = flags_class("Settings", _Own, leave_out=LEFT_OUT)


def parse(args: Sequence[str]) -> Any:
    """The settings of a command line."""
    return parse_flags(Settings, _Own, LEFT_OUT, "pser train", __doc__ or "", args)


def run(settings: Any) -> None:
    """Train as the flags say."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is first imported
    flags = given_flags(settings, LEFT_OUT)
    if settings.resume is not None:
        _refuse_beside_resume(settings, flags)
        _resume(settings)
        return
    if settings.extend is not None:
        raise PserError("--extend continues a run that is there: name it with --resume DIR")
    preset, train = _settings_and_preset(settings)
    if settings.agent is not None:
        train = train.override(switches(settings.agent, train))
    train = shorten_evaluation(train.override(flags), flags)
    refuse_without_effect(train, flags)
    refuse_unfit_preset(preset, train, flags)
    train, engine = engine_of(settings, train, flags)
    progress = make_progress(_title(train), train.run.budget_frames)
    try:
        _say_settings(train, progress)
        if engine is not None:
            progress.said(engine.said())
        _say_anatomy(train, progress)
        from pser.run.training import start_run  # imports torch: seconds in which the panel is already there

        start_run(train, preset, settings.run_dir or default_folder(train), progress, engine=engine)
    finally:
        progress.close()


def _resume(settings: Any) -> None:
    from pser.records.manifest import budget_of, read_manifest, settings_of
    from pser.records.trust import imported_modules

    extend = settings.extend or 0
    require(extend >= 0, "--extend is a number of frames", extend, "choose a positive one")
    manifest = read_manifest(settings.resume / "manifest.json")
    train = settings_of(manifest)
    engine = resumed_engine(settings, manifest)
    budget = budget_of(manifest) + extend
    progress = make_progress(_title(train), budget)
    try:
        _say_settings(train.override({"budget_frames": budget}), progress)
        from pser.run.training import resume_run

        trusted = imported_modules(train) if settings.trust_imports else ()
        resume_run(settings.resume, progress, trusted=trusted, extend_frames=extend, engine=engine)
    finally:
        progress.close()


def _title(train: TrainSettings) -> str:
    return f"{train.game.env}  {run_label(train)}"


def _say_settings(train: TrainSettings, progress: Progress) -> None:
    """All settings of the run, before it begins."""
    for line in settings_lines(train, text_width()):
        progress.said(line)


def _say_anatomy(train: TrainSettings, progress: Progress) -> None:
    """Whether backward decay will have any mass."""
    from pser.analysis.anatomy.note import decay_note

    note = decay_note(train)
    for line in textwrap.wrap(note or "", text_width()):
        progress.said(line)


def default_folder(settings: TrainSettings) -> Path:
    """runs/GAME/LABEL/seed-SEED, the colon of the game replaced for file systems that do not take it."""
    return (
        Path("runs") / settings.game.env.replace(":", "-") / run_label(settings) / f"seed-{settings.run.seed}"
    )


def _settings_and_preset(settings: Any) -> tuple[str, TrainSettings]:
    from pser.learner.presets import default_preset, preset_settings
    from pser.records.manifest import read_manifest, settings_of
    from pser.records.trust import imported_modules, refuse_imports

    if settings.from_run is not None:
        if settings.preset is not None:
            raise PserError("--from-run and --preset both name the settings to start from: give one of them")
        path = settings.from_run / "manifest.json" if settings.from_run.is_dir() else settings.from_run
        manifest = read_manifest(path)
        train = settings_of(manifest)
        refuse_imports(train, path, imported_modules(train) if settings.trust_imports else ())
        return str(manifest.get("preset", "unknown")), train if settings.env is None else train.override(
            {"env": settings.env}
        )
    if settings.env is None:
        raise PserError("which game? Name one, for example pser train minatar:breakout, or use --resume DIR")
    preset = settings.preset or default_preset(settings.env)
    return preset, preset_settings(preset, settings.env)


def _refuse_beside_resume(settings: Any, flags: dict[str, Any]) -> None:
    others = [
        name
        for name in ("env", "preset", "agent", "run_dir", "from_run")
        if getattr(settings, name) is not None
    ]
    others += [name for name in ENGINE_FLAGS if name != "ray_address" and is_given(settings, name)]
    others += list(flags)
    if others:
        names = ", ".join(name if name == "env" else as_flag(name) for name in others)
        raise PserError(f"--resume continues a run with its own settings, got {names} as well: leave it out")
