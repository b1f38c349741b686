"""manifest.json: all that is needed to know what a run was, and to repeat it."""

import json
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pser.errors import DamagedFileError, PserError, is_whole, require
from pser.files.atomic import write_text
from pser.files.json_text import parse_json
from pser.learner.family import agent_label, run_label
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import from_json, to_json

FORMAT = 1
PACKAGES = ("pser", "numpy", "torch", "gymnasium", "ale-py", "MinAtar")


def build_manifest(settings: TrainSettings, preset: str, command: str | None = None) -> dict[str, Any]:
    """The manifest of a run that starts now; `command` is what was typed, by default in this process."""
    return {
        "format": FORMAT,
        "settings": to_json(settings),
        "env": settings.game.env,
        "replay": settings.replay.replay,
        "agent": agent_label(settings),
        "label": run_label(settings),
        "seed": settings.run.seed,
        "preset": preset,
        "command": command or shlex.join(["pser", *sys.argv[1:]]),
        "versions": {"python": platform.python_version()} | _versions(),
        "commit": _commit(),
        "machine": {
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json, atomically."""
    write_text(path, json.dumps(manifest, indent=2) + "\n")


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest; what is not one is an error of one line."""
    try:
        manifest = parse_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise PserError(f"there is no manifest at {path}: name a run folder or its manifest.json") from None
    except DamagedFileError as error:
        reason = str(error).partition(": ")[0]
        raise PserError(f"{path} is not a manifest ({reason}): restore it, or start a new run") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or "settings" not in manifest:
        raise PserError(f"{path} is not a manifest of format {FORMAT}: it was written by something else")
    return manifest


def settings_of(manifest: dict[str, Any]) -> TrainSettings:
    """The settings a manifest holds."""
    return from_json(manifest["settings"])


def budget_of(manifest: dict[str, Any]) -> int:
    """The frames a run is to have: those of its settings, or more if it was extended since."""
    settings = settings_of(manifest)
    extended = manifest.get("extended_to_frames", settings.run.budget_frames)
    require(is_whole(extended), "extended_to_frames must be a whole number", extended, "restore the manifest")
    return max(int(extended), settings.run.budget_frames)


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """The commit of the source tree this package runs from; None for an installed one."""
    folder = Path(__file__).resolve().parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        inside = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", __file__], capture_output=True
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if inside.returncode == 0 and done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
