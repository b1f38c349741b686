"""Steps on their way from an actor to a shard: each frame once, however many observations show it."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser.env.game import Step
from pser.memory.arrays import Ints
from pser.spec import Array, Frames

Values = npt.NDArray[Any]


class Chunk(NamedTuple):
    """T steps of E environments."""

    frames: Values
    """[F, ...] Every frame that was seen; of observations that are no stacks, every observation."""
    now: npt.NDArray[np.int32]
    """[T, E, S] The frames of each observation; S is 1 where observations are no stacks."""
    following: npt.NDArray[np.int32]
    """[T, E, S] The same of each next observation."""
    action: Ints
    """[T, E]"""
    reward: npt.NDArray[np.float64]
    """[T, E]"""
    terminated: npt.NDArray[np.bool_]
    """[T, E]"""
    truncated: npt.NDArray[np.bool_]
    """[T, E]"""
    td_error: npt.NDArray[np.float32] | None
    """[T, E] What the memory is told of them (CurrentTD); None leaves them the largest priority."""

    @property
    def steps(self) -> int:
        """Steps of all environments together."""
        return int(self.action.size)


class Tape:
    """Records T steps of E environments."""

    def __init__(self, spec: Array | Frames, steps: int, envs: int) -> None:
        self._spec = spec
        shape, kind = (envs, *spec.row_shape), spec.dtype
        self.now = np.empty((steps + 1, *shape), kind)
        """[T + 1, E, ...] What the agent acted on, and what it acts on next."""
        self.following = np.empty((steps, *shape), kind)
        """[T, E, ...] What each action led to."""
        self.action = np.empty((steps, envs), np.int64)
        self.reward = np.empty((steps, envs))
        self.terminated = np.empty((steps, envs), np.bool_)
        self.truncated = np.empty((steps, envs), np.bool_)

    def record(self, t: int, observation: Values, action: Ints, reward: Values, step: Step) -> None:
        """Step t."""
        self.now[t], self.action[t], self.reward[t] = observation, action, reward
        self.following[t], self.now[t + 1] = step.next_observation, step.observation
        self.terminated[t], self.truncated[t] = step.terminated, step.truncated

    @property
    def goes_on(self) -> npt.NDArray[np.bool_]:
        """[T, E] Whether what an action led to is what the agent acted on next."""
        return same_bits(self.now[1:], self.following)

    def chunk(self, td_error: npt.NDArray[np.float32] | None) -> Chunk:
        """All of it, each frame once."""
        now, following = (stacks(values, self._spec) for values in (self.now, self.following))
        frames, shown, led_to = each_once(now, following, self.goes_on)
        return Chunk(
            frames, shown, led_to, self.action, self.reward, self.terminated, self.truncated, td_error
        )


def stacks(observations: Values, spec: Array | Frames) -> Values:
    """[T, E, S, ...] Observations as stacks of frames; what is no stack is one of one frame."""
    return observations if isinstance(spec, Frames) else observations[:, :, None]


def each_once(
    now: Values, following: Values, goes_on: npt.NDArray[np.bool_]
) -> tuple[Values, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The frames of stacks [T + 1, E, S, ...] and [T, E, S, ...], and which of them each stack shows.

    A stack that is the one before moved on by a frame brings one frame with it, any other all of its own.
    """
    steps, envs, size = following.shape[:3]
    moved = same_bits(following[:, :, :-1], now[:-1, :, 1:])
    own_following = np.ones((steps, envs, size), np.bool_)
    own_following[:, :, :-1] = ~moved[..., None]
    own_now = np.empty((steps, envs, size), np.bool_)
    own_now[0] = True
    own_now[1:] = ~goes_on[:-1, :, None]
    frames = np.concatenate([now[:-1][own_now], following[own_following]])
    places = np.cumsum(np.concatenate([own_now.ravel(), own_following.ravel()]), dtype=np.int32) - 1
    shown, led_to = places.reshape(2, steps, envs, size)
    for t in range(steps):
        if t:
            shown[t] = np.where(goes_on[t - 1, :, None], led_to[t - 1], shown[t])
        led_to[t, :, :-1] = np.where(moved[t, :, None], shown[t, :, 1:], led_to[t, :, :-1])
    return frames, shown, led_to


def same_bits(one: Values, other: Values) -> npt.NDArray[np.bool_]:
    """[T, E] Whether the rest of each is the same to the bit: 0.0 and -0.0 are not, a NaN and itself are."""
    if one.dtype.kind == "f" and one.dtype.itemsize <= 8:
        bits = f"u{one.dtype.itemsize}"
        one, other = one.view(bits), other.view(bits)
    return np.asarray((one == other).all(axis=tuple(range(2, one.ndim))))


def observations_of(chunk: Chunk, spec: Array | Frames) -> tuple[Values, Values]:
    """[T·E, ...] The observations and the next ones of a chunk, bit for bit, in the order of time."""
    rows = (chunk.steps, *spec.row_shape)
    return chunk.frames[chunk.now].reshape(rows), chunk.frames[chunk.following].reshape(rows)
