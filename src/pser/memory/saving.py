"""Settings, specs and random generators as JSON and back: what a memory's file tells beside its arrays."""

import io
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from pser.errors import PserError, require
from pser.files.container import array_of
from pser.memory.prioritization import PER, PSER, AdaptiveWindow, Prioritization, Uniform
from pser.spec import Array, Field, Frames

KIND = "ReplayMemory"
"""What the file of a memory says it is."""
LARGEST_COUNT = 2**62
"""Of ids and frames: far beyond any run."""


Reduced = tuple[Callable[[Any, bytes], Any], tuple[Any, bytes]]


def reduced(saved: Any) -> Reduced:
    """For `copy` and `pickle` of a memory or an index: how it is made again, from the bytes of a save."""
    stream = io.BytesIO()
    saved.save(stream)
    return restored, (type(saved), stream.getvalue())


def restored(kind: Any, content: bytes) -> Any:
    """A memory or an index as it was copied or pickled."""
    return kind.load(io.BytesIO(content))


def check_count(value: Any, what: str) -> int:
    """A number that a file gives for how many there were."""
    require(
        type(value) is int and 0 <= value <= LARGEST_COUNT,
        f"{what} must be a count",
        value,
        "use an older copy",
    )
    return int(value)


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """A generator's state, ready for JSON."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise PserError(
            f"only NumPy's default generator can be saved, got {state['bit_generator']}: seed with a number"
        )
    return dict(state)


def rng_from_state(state: dict[str, Any]) -> np.random.Generator:
    """The generator that was saved."""
    numbers = [*state["state"].values(), state["has_uint32"], state["uinteger"]]
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise PserError("the state of a random generator must be whole numbers: use an older copy")
    bits = np.random.PCG64()
    bits.state = state  # type: ignore[assignment]  # a dict of just this form, as JSON gave it back
    return np.random.Generator(bits)


def to_json(settings: Prioritization | Field) -> dict[str, Any]:
    """Settings or a spec as JSON, with the name of their class."""
    if isinstance(settings, Array | Frames):
        stack: dict[str, Any] = {}
        if isinstance(settings, Frames):
            stack = {"stack": settings.stack, "spare": settings.spare}
            if settings.compress:
                stack |= {"compress": True, "capacity_bytes": settings.capacity_bytes}
            if settings.apart:
                stack["apart"] = settings.apart
        return {
            "type": type(settings).__name__,
            "shape": list(settings.shape),
            "dtype": settings.dtype.str,
            **stack,
        }
    return {"type": type(settings).__name__, **asdict(settings)}


def prioritization_from_json(data: dict[str, Any]) -> Prioritization:
    """The settings that were saved."""
    values = {key: value for key, value in data.items() if key != "type"}
    if isinstance(values.get("window"), dict):
        values["window"] = AdaptiveWindow(**values["window"])
    kinds: dict[str, type[Prioritization]] = {"PSER": PSER, "PER": PER, "Uniform": Uniform}
    return kinds[data["type"]](**values)


def field_from_json(data: dict[str, Any]) -> Field:
    """The spec that was saved."""
    dtype, shape = array_of(data["dtype"], data["shape"])
    if data["type"] == "Frames":
        return Frames(
            shape,
            stack=data["stack"],
            dtype=dtype,
            spare=data["spare"],
            compress=data.get("compress", False),
            capacity_bytes=data.get("capacity_bytes"),
            apart=data.get("apart", 0),
        )
    if data["type"] == "Array":
        return Array(shape, dtype)
    raise PserError(f"a field must be an Array or Frames, got {data['type']!r}: load it with what saved it")
