"""What `sample` returns, and the buffers it is written to."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pser import _kernel
from pser.spec import WHOLE, Array, Fields, Frames


class Batch(NamedTuple):
    """Sampled transitions, one per row.

    The arrays are reused: they hold until the next `sample` of the same size (pass copy=True to keep them).
    """

    observation: Any
    """Array, or dict of arrays, as it was added."""
    action: npt.NDArray[Any]
    """As it was added."""
    reward: npt.NDArray[Any]
    """Σ γ^k·r_k over the transition's m ≤ n steps."""
    next_observation: Any
    """What was seen m steps later; at an episode's end the true final observation."""
    discount: npt.NDArray[Any]
    """γ^m, or 0 if terminated: the target is reward + discount·max Q(next_observation)."""
    terminated: npt.NDArray[np.bool_]
    """Did the episode terminate within the m steps? (Truncation does not count: it bootstraps.)"""
    weights: npt.NDArray[np.float32]
    """Importance-sampling weights, for the loss."""
    ids: npt.NDArray[np.int64]
    """For update_priorities."""
    probabilities: npt.NDArray[np.float64]
    """P(i) when sampled."""


class BatchBuffers:
    """A batch and the kernel's handle on its arrays, to be filled again and again."""

    def __init__(self, size: int, fields: Fields, action: Array, one_step: bool, real: np.dtype[Any]) -> None:
        now: dict[str, Any] = {}
        following: dict[str, Any] = {}
        filled: list[tuple[Any, Any]] = []
        # The kernel lists plain arrays before frames.
        for name, field in sorted(fields.items(), key=lambda item: isinstance(item[1], Frames)):
            if isinstance(field, Frames) and one_step:
                both = np.zeros((size, field.stack + 1, *field.shape), field.dtype)
                now[name], following[name] = both[:, :-1], both[:, 1:]
                filled.append((both, None))
            else:
                now[name] = np.zeros((size, *field.row_shape), field.dtype)
                following[name] = np.zeros((size, *field.row_shape), field.dtype)
                filled.append((now[name], following[name]))
        self.batch = Batch(
            observation=_whole(now, fields),
            action=np.zeros((size, *action.shape), action.dtype),
            reward=np.zeros(size, real),
            next_observation=_whole(following, fields),
            discount=np.zeros(size, real),
            terminated=np.zeros(size, np.bool_),
            weights=np.zeros(size, np.float32),
            ids=np.zeros(size, np.int64),
            probabilities=np.zeros(size, np.float64),
        )
        b = self.batch
        self.outputs = _kernel.Outputs(
            ids=b.ids,
            weights=b.weights,
            probabilities=b.probabilities,
            action=b.action,
            reward=b.reward,
            discount=b.discount,
            terminated=b.terminated,
            now=[array for array, _ in filled],
            next=[array for _, array in filled],
        )


def first_row(batch: Batch) -> Batch:
    """The batch's first transition, without the row axis."""
    rows: list[Any] = []
    for value in batch:
        rows.append({name: part[0] for name, part in value.items()} if isinstance(value, dict) else value[0])
    return Batch(*rows)


def _whole(parts: dict[str, Any], fields: Fields) -> Any:
    return parts[WHOLE] if WHOLE in parts else {name: parts[name] for name in fields}
