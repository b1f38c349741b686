"""A few lines at the end of a terminal that are redrawn in place."""

import math
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

REFRESH_SECONDS = 0.25
FIRST_SECONDS = 0.1
"""What is over before this shows nothing."""


class Screen:
    """Draws what `make` gives four times a second, from a thread of its own.

    Rows are counted at the width the terminal has now: one that was made narrower has folded the lines drawn before.
    """

    def __init__(self, console: Console, make: Callable[[], Any]) -> None:
        self._console, self._make = console, make
        self._lengths: list[int] = []
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_drawing, daemon=True)

    @property
    def width(self) -> int:
        """Columns of the terminal, now."""
        return self._console.width

    def start(self) -> None:
        """Begin to draw."""
        self._thread.start()

    def say(self, message: str) -> None:
        """Print a message above the drawing."""
        with self._lock:
            drawn = bool(self._lengths)
            self._write(self._erasure() + message + "\n")
            if drawn:
                self.draw()

    def draw(self) -> None:
        """Draw in place of what was drawn before; nothing where it does not fit."""
        with self._lock:
            with self._console.capture() as capture:
                self._console.print(self._make())
            text = capture.get()
            lines = Text.from_ansi(text).plain.splitlines()
            fits = len(lines) < self._console.height
            erasure = self._erasure()
            self._lengths = [Text(line).cell_len for line in lines] if fits else []
            self._write(erasure + (text if fits else ""))

    def stop(self, *, keep: bool) -> None:
        """Stop drawing, and leave the last drawing on the screen or take it away."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            if keep and self._lengths:
                self.draw()
            elif self._lengths:
                self._write(self._erasure())
            self._lengths = []

    def _keep_drawing(self) -> None:
        wait = FIRST_SECONDS
        while not self._over.wait(wait):
            self.draw()
            wait = REFRESH_SECONDS

    def _erasure(self) -> str:
        """What takes the last drawing away, and puts the cursor where it began."""
        width = max(self._console.width, 1)
        rows = sum(max(1, math.ceil(length / width)) for length in self._lengths)
        self._lengths = []
        return f"\r\x1b[{rows}A\x1b[J" if rows else ""

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()
