"""Signals that ask a run to stop: the first is answered with a checkpoint, a second Ctrl-C at once."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """While it is entered, signals do not end the process but call `ask`; a second Ctrl-C is a KeyboardInterrupt.

    `ask` runs between any two instructions, so it may set a flag and no more.
    A signal that the process was started to ignore (nohup) stays ignored. Outside the main thread, where signals
    do not arrive, it does nothing.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._before: dict[signal.Signals, Any] = {}
        self._deaf = False
        self.caught: signal.Signals | None = None
        """The signal that asked first."""

    def __enter__(self) -> Self:
        """Take the signals."""
        if threading.current_thread() is threading.main_thread():
            for number in ASKING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """From here on nothing interrupts: the last words of the run are being written."""
        self._deaf = True

    def end_process(self) -> None:
        """If a signal asked to stop, end as that signal is answered: Ctrl-C by KeyboardInterrupt, others by exit."""
        if self.caught is signal.SIGINT:
            raise KeyboardInterrupt
        if self.caught is not None:
            sys.exit(128 + self.caught)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        if self._deaf:
            return
        again = self.caught is not None
        if not again:
            self.caught = signal.Signals(number)
        if number == signal.SIGHUP:
            _leave_terminal()
        if again and number == signal.SIGINT:
            self.hold()
            raise KeyboardInterrupt
        if not again:
            self._ask()


def _leave_terminal() -> None:
    """The terminal is gone: what is written to it from now on goes nowhere, instead of failing the run."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream.isatty():
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            continue
