"""What a memory stores: plain arrays, frame stacks, or a dict of these; also read off Gymnasium spaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pser.errors import PserError, is_real, is_whole, require

DType = np.dtype[Any]


@dataclass(frozen=True, init=False)
class Array:
    """An array of fixed shape and dtype, stored whole for every transition."""

    shape: tuple[int, ...]
    """Without the environment axis; () for a scalar."""
    dtype: DType
    """Given back as it is: a value of another dtype is refused unless the cast is safe."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> None:
        object.__setattr__(self, "shape", _checked_shape(shape))
        object.__setattr__(self, "dtype", checked_dtype(dtype))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.shape


@dataclass(frozen=True, init=False)
class Frames:
    """A stack of the newest frames, oldest first, shape (stack, *shape): each frame is stored once."""

    shape: tuple[int, ...]
    """Of one frame."""
    stack: int
    """Frames per observation."""
    dtype: DType
    """Of the pixels."""
    spare: float
    """Room for the frames that begin episodes, as a share of the capacity. Very short episodes may need more of it:
    once it is used up, the oldest transitions leave the memory a little before the capacity is reached."""
    compress: bool
    """Keep of most frames only what changed since an earlier one; they come back bit for bit."""
    capacity_bytes: int | None
    """The most that compressed frames may take; once it is used up, the oldest transitions leave the memory. None: as
    much as the capacity needs, at worst as if they were not compressed."""
    apart: int
    """Steps that an environment may fall behind the others that add to the same memory, where each adds many at a time.
    The first observations of one that was further behind are stored anew, and take room from the rest."""

    def __init__(
        self,
        shape: tuple[int, ...],
        stack: int = 4,
        dtype: npt.DTypeLike = np.uint8,
        spare: float = 1 / 128,
        *,
        compress: bool = False,
        capacity_bytes: int | None = None,
        apart: int = 0,
    ) -> None:
        object.__setattr__(self, "shape", _checked_shape(shape))
        object.__setattr__(self, "dtype", checked_dtype(dtype))
        require(
            is_whole(stack) and 1 <= stack <= 64, "stack must be from 1 to 64 frames", stack, "DQN uses 4"
        )
        require(
            is_real(spare) and 0.0 <= spare <= 64.0,
            "spare must be a share of the capacity from 0 to 64",
            spare,
            "the default is 1/128",
        )
        require(
            isinstance(compress, bool | np.bool_),
            "compress must be True or False",
            compress,
            "True saves memory",
        )
        require(
            capacity_bytes is None or (compress and is_whole(capacity_bytes) and 0 < capacity_bytes < 2**62),
            "capacity_bytes must be None, or with compress=True a number of bytes",
            capacity_bytes,
            "leave it out to be bounded by transitions alone",
        )
        require(
            is_whole(apart) and 0 <= apart <= 2**20,
            f"apart must be a number of steps up to {2**20}",
            apart,
            "0 if environments step together",
        )
        object.__setattr__(self, "apart", int(apart))
        object.__setattr__(self, "compress", bool(compress))
        object.__setattr__(self, "capacity_bytes", None if capacity_bytes is None else int(capacity_bytes))
        object.__setattr__(self, "stack", int(stack))
        object.__setattr__(self, "spare", float(spare))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return (self.stack, *self.shape)


Field = Array | Frames
Fields = dict[str, Field]

MOST_AXES = 32
"""Of a field: NumPy takes 64, and a batch of stacks adds a few."""

OBSERVATION = (
    "an observation must be an array, a frame stack, or a dict of these",
    "give pser.Array, pser.Frames, a dict of these, or a Gymnasium space of fixed shape",
)
FIELD = (
    "a field of a dict observation must be an array or a frame stack",
    "give pser.Array, pser.Frames or a Gymnasium space of fixed shape, and move the fields of an inner dict out",
)
ACTION = (
    "an action must be one array",
    "give pser.Array or a Gymnasium space of fixed shape, and join the parts of a dict to one vector",
)
"""What can be stored, and what to do otherwise."""

WHOLE = ""
"""The name of the only field of an observation that is not a dict."""


def observation_fields(spec: Any) -> Fields:
    """The named fields of an observation spec; an observation that is one array is the field WHOLE."""
    if isinstance(spec, Array | Frames):
        return {WHOLE: spec}
    if isinstance(spec, Mapping):
        fields = {str(name): _one_field(part, *FIELD) for name, part in spec.items()}
    elif hasattr(spec, "spaces") and isinstance(spec.spaces, Mapping):  # gymnasium.spaces.Dict
        fields = {str(name): _one_field(part, *FIELD) for name, part in spec.spaces.items()}
    else:
        return {WHOLE: _one_field(spec, *OBSERVATION)}
    if not fields or WHOLE in fields:
        raise PserError(
            f"a dict observation needs at least one field and no empty name, got {list(fields)}: name them"
        )
    return fields


def action_field(spec: Any) -> Array:
    """The spec of an action."""
    field = _one_field(spec, *ACTION)
    if isinstance(field, Frames):
        raise PserError(f"an action cannot be a frame stack, got {field}: use pser.Array")
    return field


def _one_field(spec: Any, rule: str, remedy: str) -> Field:
    if isinstance(spec, Array | Frames):
        return spec
    # Gymnasium spaces tell shape and dtype; asking for the attributes spares importing it.
    shape, dtype = getattr(spec, "shape", None), getattr(spec, "dtype", None)
    if shape is None or dtype is None or hasattr(spec, "spaces"):
        raise PserError(f"{rule}, got {spec!r}: {remedy}")
    return Array(tuple(shape), dtype)


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else None
    require(
        sizes is not None and all(is_whole(n) and n >= 1 for n in sizes),
        "a shape must be a tuple of sizes of at least 1",
        shape,
        "use () for a scalar",
    )
    require(
        len(shape) <= MOST_AXES, f"a shape must have at most {MOST_AXES} axes", len(shape), "flatten some"
    )
    return tuple(int(n) for n in shape)


def checked_dtype(dtype: npt.DTypeLike) -> DType:
    """The dtype, if it is one whose values can be stored as they are."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise PserError(f"dtype must be one that NumPy knows, got {dtype!r}: try 'float32'") from None
    if kind.hasobject or kind.itemsize == 0 or kind.kind not in "?biufc":
        raise PserError(f"dtype must be a plain number or bool, got {kind}: encode it as one")
    return kind.newbyteorder("=")
