"""The `pser` command: one module per subcommand, each imported only when it is called.

A subcommand is a module of this package with a frozen dataclass `Settings` (tyro makes the flags from it)
and a function `run(settings)`. A broken rule (PserError) or a file-system error ends as one line and exit code 2.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from pser.errors import PserError

COMMANDS: dict[str, str] = {
    "cliffwalk": "reproduce the paper's Blind Cliffwalk study",
    "theorem": "measure Theorem 1 against what it claims",
    "paper": "recompute the paper's Atari table and give a verdict on each of its claims",
    "train": "train a DQN agent with any replay strategy, or continue a run",
    "evaluate": "measure a trained agent over many episodes",
    "watch": "write a video of a trained agent playing",
    "report": "compare training runs on one page that works offline",
    "sweep": "train a grid of games, replay strategies and seeds",
}
"""Subcommand (and module name) → what it does, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit code is 0 (done), 2 (bad input) or 130 (interrupted)."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return 0 if args else 2
    name, rest = args[0], args[1:]
    if name == "--version":
        import pser

        print(f"pser {pser.__version__}")
        return 0
    if name not in COMMANDS:
        return _fail(f"no command {name!r}: choose one of {', '.join(COMMANDS)}")
    try:
        import tyro
    except ModuleNotFoundError:
        return _fail("the commands need tyro and rich: pip install 'pser[cli]'")
    module = import_module(f"pser.cli.{name}")
    try:
        settings = tyro.cli(module.Settings, prog=f"pser {name}", description=module.__doc__, args=rest)
        module.run(settings)
    except (PserError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def _usage() -> str:
    width = max((len(name) for name in COMMANDS), default=0)
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(["usage: pser COMMAND [OPTIONS]   (pser COMMAND --help explains each option)", "", *lines])


def _fail(message: str) -> int:
    print(f"pser: {message}", file=sys.stderr)
    return 2
