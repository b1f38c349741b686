"""Ray itself: found or explained, started on this machine or joined."""

import os
from typing import Any

from pser.env.optional import need
from pser.errors import PserError


def join_ray(address: str | None) -> tuple[Any, bool]:
    """The ray module, connected, and whether this process has to shut it down.

    Without an address Ray starts on this machine; `auto` is the cluster this machine is part of.
    """
    # Ray would tell its makers of every start; it also changes the GPUs a task sees, and says so at each.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # A call whose answer nobody awaits may fail with the process it went to: that is dealt with, and no news.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    ray = need("ray", "runs with --engine ray", "'pser[ray]'")
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
