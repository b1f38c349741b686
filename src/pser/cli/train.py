"""Train a DQN agent with any replay strategy on Atari, MinAtar or a Gymnasium game.

$ pser train minatar:breakout --replay pser --frames 1000000 --run-dir runs/breakout
$ pser train --resume runs/breakout
$ pser train --from-run runs/breakout/manifest.json --seed 1 --run-dir runs/breakout-1
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pser.cli.parsing import UNSET
from pser.cli.train_flags import PRESET, flags_class, given_flags, parse_flags
from pser.errors import PserError
from pser.learner.settings import TrainSettings

LEFT_OUT = frozenset({"env"})


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What is said once per run; every other flag changes one setting of the preset."""

    env: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="GAME", help_behavior_hint="")] = (
        None
    )
    """The game: atari:NAME, minatar:NAME or gym:ID (not with --resume)."""
    preset: Annotated[str | None, PRESET] = None
    """The settings to start from; by default paper on Atari, minatar on MinAtar, classic elsewhere."""
    run_dir: Annotated[Path | None, UNSET] = None
    """The folder of the run; by default runs/GAME/LABEL/seed-SEED."""
    resume: Annotated[Path | None, UNSET] = None
    """Continue the run in this folder, with its own settings."""
    from_run: Annotated[Path | None, UNSET] = None
    """Start from the settings of another run (its folder or manifest.json) instead of a preset's."""
    trust_imports: bool = False
    """Let the manifest of --resume or --from-run import Python modules (gym:MODULE:ID, --network MODULE:CLASS)."""


Settings: type[Any] = flags_class("Settings", _Own, leave_out=LEFT_OUT)


def parse(args: Sequence[str]) -> Any:
    """The settings of a command line."""
    return parse_flags(Settings, _Own, LEFT_OUT, "pser train", __doc__ or "", args)


def run(settings: Any) -> None:
    """Train as the flags say."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is first imported
    from pser.records.manifest import read_manifest, settings_of
    from pser.records.trust import imported_modules
    from pser.run.progress import make_progress
    from pser.run.training import resume_run, start_run

    flags = given_flags(settings, LEFT_OUT)
    if settings.resume is not None:
        _refuse_beside_resume(settings, flags)
        saved = settings_of(read_manifest(settings.resume / "manifest.json"))
        progress = make_progress(f"{saved.game.env}  {saved.replay.label}", saved.run.budget_frames)
        try:
            resume_run(
                settings.resume, progress, trusted=imported_modules(saved) if settings.trust_imports else ()
            )
        finally:
            progress.close()
        return
    preset, train = _settings_and_preset(settings)
    train = train.override(flags)
    path = settings.run_dir or default_folder(train)
    progress = make_progress(f"{train.game.env}  {train.replay.label}", train.run.budget_frames)
    try:
        start_run(train, preset, path, progress)
    finally:
        progress.close()


def default_folder(settings: TrainSettings) -> Path:
    """runs/GAME/LABEL/seed-SEED, the colon of the game replaced for file systems that do not take it."""
    return (
        Path("runs")
        / settings.game.env.replace(":", "-")
        / settings.replay.label
        / f"seed-{settings.run.seed}"
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
        name for name in ("env", "preset", "run_dir", "from_run") if getattr(settings, name) is not None
    ]
    others += list(flags)
    if others:
        names = ", ".join(name if name == "env" else "--" + name.replace("_", "-") for name in others)
        raise PserError(f"--resume continues a run with its own settings, got {names} as well: leave it out")
