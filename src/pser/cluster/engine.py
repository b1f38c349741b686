"""Ray itself: found or explained, started on this machine or joined."""

import os
from typing import Any

from pser.env.optional import need
from pser.errors import PserError

QUIET = {
    # Ray would tell its makers of every start; it also changes the GPUs a task sees, and says so at each.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A process that is lost, and a call to it that nobody awaits, are dealt with and said in a line of our own.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed",
}
"""What Ray is asked by its environment, before it is imported; a value that is there stays."""


def find_ray() -> Any:
    """The ray module, or an error that says what to install."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    return need("ray", "runs with --engine ray", "'pser[ray]'")


def join_ray(address: str | None) -> tuple[Any, bool]:
    """The ray module, connected, and whether this process has to shut it down.

    Without an address Ray starts on this machine; `auto` is the cluster this machine is part of.
    """
    ray = find_ray()
    if ray.is_initialized():
        return ray, False
    local = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **local)
    except (ConnectionError, ValueError, TimeoutError) as error:
        reason = str(error).partition("\n")[0]
        raise PserError(
            f"no Ray cluster at {address!r} ({reason}): begin one with `ray start --head`, or leave --ray-address out"
        ) from None
    return ray, True
