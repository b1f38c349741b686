"""Settings that name Python modules: importing one runs its code, so a file from elsewhere may not ask for it."""

from collections.abc import Collection
from pathlib import Path

from pser.errors import PserError
from pser.learner.settings import TrainSettings


def imported_modules(settings: TrainSettings) -> frozenset[str]:
    """The modules that making the game (gym:MODULE:ID) and the network (MODULE:CLASS) would import by name."""
    game = settings.game.env.removeprefix("gym:") if settings.game.family == "gym" else ""
    named = (game.rpartition(":")[0], settings.agent.network.rpartition(":")[0])
    return frozenset(module for module in named if module)


def refuse_imports(settings: TrainSettings, source: Path, trusted: Collection[str]) -> None:
    """Raise unless every module that the settings read from `source` would import is trusted."""
    unknown = sorted(imported_modules(settings) - set(trusted))
    if unknown:
        raise PserError(
            f"settings from a file import no module unasked, but {source} names {', '.join(unknown)}: "
            "add --trust-imports if you trust that code"
        )
