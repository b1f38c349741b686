"""Waiting for what other processes do, as long as a slow and busy machine may need: a deadline here tests no speed."""

import time

PATIENCE = 600
"""Seconds after which nothing is expected to come any more."""


def until(condition, seconds=PATIENCE):
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.02)
