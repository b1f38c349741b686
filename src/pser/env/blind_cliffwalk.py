"""Blind Cliffwalk: a chain of n states in which one wrong step ends the episode (Schaul et al. 2016).

At each state one of two actions is right and leads on, the other ends the episode without reward; the right
action at the last state ends it with reward 1. A random policy finds the reward once in 2^n episodes. The
definitions follow the appendix of Brittain et al. 2019, with one gap closed: the paper lets a wrong action
lead "back to the initial state", but the Q* it prints holds only if nothing is bootstrapped from there, so
the end of an episode is terminal (discount 0). This page needs NumPy alone; `blind_cliffwalk_gym` has the
environment.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pser.errors import PserError

MAX_EXHAUSTIVE_STATES = 20
"""2^21 − 2 transitions: more than the paper's 16 states, and still a small memory."""


def alternating_actions(states: int) -> tuple[int, ...]:
    """The right action of each state: 0, 1, 0, 1, … It varies, so that no constant policy succeeds."""
    return tuple(s % 2 for s in range(states))


def discount(states: int) -> float:
    """γ = 1 − 1/n (Brittain et al. 2019, Appendix B): values keep their scale whatever n."""
    check_states(states)
    return 1.0 - 1.0 / states


def optimal_values(states: int) -> NDArray[np.float64]:
    """Q*(s_i, right) = γ^(n−i), Q*(s_i, wrong) = 0 (Brittain et al. 2019, proof of Theorem 1), shape (n, 2).

    Column 0 is the right action, column 1 the wrong one.
    """
    values = np.zeros((states, 2))
    values[:, 0] = discount(states) ** np.arange(states - 1, -1, -1)
    return values


def bootstrapped_values(states: int) -> NDArray[np.float64]:
    """The fixed point of the chain as the paper's appendix writes it, where every episode end leads on to
    s_1.

    V(s_1) = γ^(n−1)·(1 + γ·V(s_1)), hence Q(s_i, right) = γ^(n−i) / (1 − γ^n) and Q(s_i, wrong) = γ·V(s_1).
    It differs from the printed Q*: that one needs terminal episode ends.
    """
    gamma = discount(states)
    values = optimal_values(states) / (1.0 - gamma**states)
    values[:, 1] = gamma * values[0, 0]
    return values


@dataclass(frozen=True, kw_only=True)
class ExhaustiveMemory:
    """Every action sequence played once until it ends: 2^(n+1) − 2 transitions, a single one rewarded."""

    states: int
    """n, the length of the chain."""
    state: NDArray[np.int64]
    """The state each transition starts from, 0 … n−1."""
    right: NDArray[np.bool_]
    """Whether the action taken was the right one."""
    action: NDArray[np.int64]
    """The action itself."""
    first: NDArray[np.bool_]
    """Whether the transition opens an episode; episodes are contiguous."""

    def __len__(self) -> int:
        return len(self.state)

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair (state, right or wrong) of each transition, as an index into the flattened value table."""
        return 2 * self.state + ~self.right

    @property
    def rewarded(self) -> NDArray[np.bool_]:
        """The right action at the last state: the one transition with reward 1."""
        at_goal: NDArray[np.bool_] = self.right & (self.state == self.states - 1)
        return at_goal

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Episodes end by the first wrong action or by the reward."""
        return ~self.right | self.rewarded


def exhaustive_memory(
    states: int, rng: np.random.Generator, right_actions: Sequence[int] | None = None
) -> ExhaustiveMemory:
    """All 2^n action sequences until termination, in random order (Brittain et al. 2019, Appendix B)."""
    check_states(states)
    if states > MAX_EXHAUSTIVE_STATES:
        raise PserError(
            f"an exhaustive memory holds 2^(n+1) - 2 transitions, so n is at most {MAX_EXHAUSTIVE_STATES}; "
            f"got {states}: choose fewer states"
        )
    rights = np.array(alternating_actions(states) if right_actions is None else right_actions)
    sequence = rng.permutation(2**states)
    actions = (sequence[:, None] >> np.arange(states)) & 1  # (episodes, states)
    wrong = actions != rights
    # An episode lasts until its first wrong action; the one flawless sequence lasts n steps.
    length = np.where(wrong.any(axis=1), wrong.argmax(axis=1) + 1, states)
    played = np.arange(states) < length[:, None]
    state = np.broadcast_to(np.arange(states), played.shape)[played]
    return ExhaustiveMemory(
        states=states, state=state, right=~wrong[played], action=actions[played], first=state == 0
    )


def check_states(states: int) -> None:
    """A chain has at least one state."""
    if states < 1:
        raise PserError(f"a Blind Cliffwalk has at least 1 state; got {states}: choose a positive number")
