"""What a game is given, refused with rule, value and remedy where it does not fit."""

import numpy as np

from pser.env.game import Ints, State
from pser.errors import PserError


def check_actions(actions: Ints, num_envs: int, num_actions: int) -> list[int]:
    """The actions as Python integers, or a PserError (some environments take a wrong one silently)."""
    if actions.shape != (num_envs,) or actions.dtype.kind not in "iu":
        raise PserError(
            f"a step takes one whole-number action per environment, shape ({num_envs},), "
            f"got {actions.dtype} of shape {actions.shape}: pass an int64 array"
        )
    values: list[int] = actions.tolist()
    if min(values) < 0 or max(values) >= num_actions:
        raise PserError(f"actions are 0 to {num_actions - 1} in this game, got {values}: choose among them")
    return values


def check_count(name: str, value: int, least: int) -> int:
    """`value` as an int of at least `least`, or a PserError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PserError(f"{name} must be a whole number of at least {least}, got {value!r}: raise it")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """`value` as a float in [0, 1], or a PserError."""
    if not 0.0 <= value <= 1.0:
        raise PserError(
            f"{name} must be a probability between 0 and 1, got {value!r}: choose one in that range"
        )
    return float(value)


def check_state(state: State, name: str, num_envs: int) -> None:
    """Refuse a state that another game or another number of environments left."""
    saved = state.get("name"), state.get("num_envs")
    if saved != (name, num_envs):
        raise PserError(
            f"a state fits only the game that gave it, got one of {saved[0]} with {saved[1]} environments "
            f"for {name} with {num_envs}: make the game with the saved settings"
        )
