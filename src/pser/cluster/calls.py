"""Calls to other processes: started, awaited and ended, their errors told in our own words."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from pser.errors import LostProcessError, PserError


class Lost(Exception):
    """The process that was called, or what it had made, is gone."""


DEATHS = 4
"""So often in a row may a process be lost before it has done anything."""


def counted_death(who: str, deaths: int, reason: str) -> int:
    """One more death in a row of a process that is to be replaced, after a while; one too many is an error."""
    deaths += 1
    if deaths == DEATHS:
        raise LostProcessError(f"{who} was lost {deaths} times in a row ({reason}): see the logs of Ray")
    if deaths > 1:
        time.sleep(2.0 ** (deaths - 2))
    return deaths


class Calls:
    """Ray, as far as a run needs it."""

    def __init__(self, ray: Any, cpus: float) -> None:
        """`cpus` is what each process takes of a machine."""
        self._ray = ray
        # Whoever is lost is replaced by us, not by Ray: the new one must be told what the old one knew.
        self._options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}

    def start(self, role: type, *arguments: Any) -> Any:
        """A new process that holds an object of this class."""
        return self._ray.remote(role).options(**self._options).remote(*arguments)

    def end(self, handle: Any) -> None:
        """End a process, if it is still there."""
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(handle, no_restart=True)

    def put(self, value: Any) -> Any:
        """Something that many are to get, kept once on each machine."""
        return self._ray.put(value)

    def first(self, refs: Sequence[Any], seconds: float) -> Any | None:
        """One of these that is answered, if any is within the time."""
        ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=seconds, fetch_local=False)
        return ready[0] if ready else None

    def get(self, ref: Any) -> Any:
        """The answer to a call; what a rule or a disk refused there is refused here."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, PserError | OSError):
                raise cause from None
            if isinstance(cause, errors.RayError):  # what it was to work on is gone
                raise Lost(type(cause).__name__) from None
            what = " ".join(f"{type(cause).__name__}: {cause}".split())[:300]
            raise PserError(f"a process of this run failed ({what}): see the logs of Ray") from error
        except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError) as error:
            raise Lost(type(error).__name__) from None
