"""The library of sequences that led to the largest surprises: the rule without a memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Library:
    """The ends of the sequences kept, and how surprising each was."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ends: dict[int, float] = {}

    def consider(self, ids: Ints, surprises: NDArray[np.floating[Any]], oldest: int) -> None:
        """Take what was just replayed into account: the latest |δ| of each end counts, the largest are kept."""
        found: dict[int, float] = {}
        for id_, surprise in zip(ids.tolist(), np.abs(surprises).tolist(), strict=True):
            found[id_] = max(surprise, found.get(id_, 0.0))
        known = {id_: surprise for id_, surprise in (self.ends | found).items() if id_ >= oldest}
        best = sorted(known.items(), key=lambda item: (-item[1], -item[0]))[
            : self.size
        ]  # of equals the newer
        self.ends = dict(best)
