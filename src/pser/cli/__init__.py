"""The `pser` command: one module per subcommand, each imported only when it is called.

A subcommand is a module of this package with a frozen dataclass `Settings` (tyro makes the flags from it, or the
module's own `parse`) and a function `run(settings)`. A broken rule (PserError) or a file-system error ends as one
line and exit code 2.
"""

import functools
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from pser.errors import PserError

COMMANDS: dict[str, str] = {
    "demo": "the main job in a few minutes: study, short training comparison, report",
    "cliffwalk": "reproduce the paper's Blind Cliffwalk study",
    "theorem": "measure Theorem 1 against what it claims",
    "paper": "recompute the paper's Atari table and give a verdict on each of its claims",
    "train": "train a DQN agent with any replay strategy, or continue a run",
    "presets": "the settings that training starts from",
    "evaluate": "measure a trained agent over many episodes",
    "watch": "write a video of a trained agent playing",
    "inspect": "show what is in a replay memory on one page that works offline",
    "playground": "play with the rules on one page: PER and PSER side by side",
    "report": "compare training runs on one page that works offline",
    "anatomy": "say what the priorities are made of under given settings",
    "sweep": "train a grid of games, replay strategies and seeds",
    "tune": "tune W, ρ and η as the paper did, and by random search, and say how sure the choice is",
    "study": "carry out a declared experiment and report what it shows",
}
"""Subcommand (and module name) → what it does, in one line."""

BAD_INPUT, INTERRUPTED, NOBODY_READS = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit code is 0 (done), 2 (bad input), 130 (interrupted) or 141 (pipe closed)."""
    try:
        code = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # here, where a closed pipe can still be answered
        return code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. What is still buffered goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def _main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return 0 if args else BAD_INPUT
    name, rest = args[0], args[1:]
    if name == "--version":
        import pser

        print(f"pser {pser.__version__}")
        return 0
    if name not in COMMANDS:
        return _fail(f"no command {name!r}: choose one of {', '.join(COMMANDS)}")
    try:
        from pser.cli.parsing import parse
    except ModuleNotFoundError:
        return _fail("the commands need tyro and rich: pip install 'pser[cli]'")
    try:
        module = import_module(f"pser.cli.{name}")
        if hasattr(module, "parse"):
            settings = module.parse(rest)
        else:
            # Given a class, tyro frames the errors of its rules itself; from a callable they come through.
            make_settings = functools.partial(module.Settings)
            settings = parse(make_settings, f"pser {name}", module.__doc__ or "", rest)
        module.run(settings)
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "pser":
            raise
        return _fail(f"{name} needs {error.name}: pip install 'pser[all]'")
    except (PserError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _usage() -> str:
    width = max((len(name) for name in COMMANDS), default=0)
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        ["usage: pser COMMAND [OPTIONS]   (pser COMMAND --help explains each option)", "", *lines]
    )


def _fail(message: str) -> int:
    print(f"pser: {message}", file=sys.stderr)
    return BAD_INPUT
