"""How often luck alone would make paired runs differ as far as they do: both sides share a seed."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from pser.analysis.statistics.aggregate import Scores
from pser.analysis.statistics.permutation import EXACT_LIMIT
from pser.errors import PserError

FloatArray = NDArray[np.float64]


def paired_p_value(x: Scores, y: Scores, rng: np.random.Generator, *, permutations: int = 5000) -> float:
    """Two-sided sign-flip test of the mean difference; the k-th runs of a task are a pair.

    The null hypothesis is that within a pair it does not matter which algorithm made which run. Each task's
    differences are divided by their root mean square, which no flip changes, so that no task outweighs the
    others. Exact where all flips can be counted; otherwise from `permutations` flips, of which the observed
    one is one. Pairing gains only where a shared seed makes two runs alike: rarely so once they have diverged.
    """
    if permutations < 1:
        raise PserError(f"a sign-flip test needs at least one flip; got {permutations}: use 1000 or more")
    weighted = np.concatenate([_weighted(task, a, b) for task, (a, b) in enumerate(_tasks(x, y))])
    weighted = weighted[weighted != 0.0]  # an equal pair stays equal when it is flipped
    if len(weighted) == 0:
        return 1.0
    observed = abs(float(weighted.sum())) - 1e-12
    if 2 ** len(weighted) <= EXACT_LIMIT:
        flips = np.array(list(product((-1.0, 1.0), repeat=len(weighted))))
        return float((np.abs(flips @ weighted) >= observed).mean())
    flips = rng.choice((-1.0, 1.0), size=(permutations, len(weighted)))
    return (int((np.abs(flips @ weighted) >= observed).sum()) + 1) / (permutations + 1)


def _tasks(x: Scores, y: Scores) -> list[tuple[FloatArray, FloatArray]]:
    if len(x) != len(y):
        raise PserError(f"both sides need the same tasks; got {len(x)} and {len(y)}: drop the unmatched ones")
    return list(zip(x, y, strict=True))


def _weighted(task: int, a: FloatArray, b: FloatArray) -> FloatArray:
    """The task's differences, such that their sum is its mean difference in root mean squares."""
    if len(a) != len(b):
        raise PserError(
            f"pairs need as many runs on both sides; task {task} has {len(a)} and {len(b)}: drop the unpaired"
        )
    differences = np.asarray(a - b, dtype=np.float64)
    size = float(np.sqrt(np.mean(differences**2))) if len(differences) else 0.0
    return differences / (size * len(differences)) if size > 0.0 else differences
