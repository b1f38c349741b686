"""Whether a manifest still says what the run was started with."""

from pathlib import Path

from pser.errors import PserError
from pser.learner.settings import TrainSettings
from pser.learner.settings_json import from_json, to_json
from pser.records.checkpoint import Checkpoint
from pser.records.nesting import flatten


def refuse_edited(settings: TrainSettings, checkpoint: Checkpoint, manifest: Path) -> None:
    """A run goes on with the settings it was started with: refuse a manifest that was given others since."""
    saved = checkpoint.state.get("settings")
    if saved is not None:
        now, before = flatten(to_json(settings)), flatten(to_json(from_json(saved)))
    else:  # a checkpoint of an earlier version: what its memory tells
        memory = checkpoint.memory
        now = {"capacity": settings.replay.capacity, "n_step": settings.replay.n_step}
        before = {"capacity": memory.capacity, "n_step": memory.n_step}
    other = [name for name in now if now[name] != before.get(name)]
    if other:
        edits = ", ".join(f"{name} {now[name]} (the run has {before.get(name)})" for name in other)
        raise PserError(
            f"a run keeps its settings, but {manifest} now says {edits}: restore it, or start a new run"
        )
