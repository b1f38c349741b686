"""Where the high priorities of reward back-propagation are: the rule without a memory."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Walkers:
    """Where each high priority is, and the reward it came from."""

    def __init__(self) -> None:
        self.origin: dict[int, int] = {}
        """Transition that holds a high priority → the rewarded one it walks back from."""

    def start(self, rewarded: Ints) -> None:
        """New rewarded transitions hold a high priority of their own."""
        for id_ in rewarded.tolist():
            self.origin[id_] = id_

    def move(self, drawn: Ints, before: Ints, oldest: int) -> tuple[list[int], list[int]]:
        """Move the walkers that were drawn to the transition before (−1: none). Who falls, and who rises.

        All leave before any arrives, so that a walker moves one step a batch, whatever the order of rows.
        """
        steps = dict(zip(drawn.tolist(), before.tolist(), strict=True))
        leaving = {id_: self.origin.pop(id_) for id_ in sorted(steps) if id_ in self.origin}
        risen: dict[int, int] = {}
        for id_, origin in sorted(leaving.items(), key=lambda item: item[1]):  # the latest reward wins
            next_ = steps[id_] if steps[id_] >= 0 else origin
            if next_ >= oldest:
                risen[next_] = max(origin, risen.get(next_, -1), self.origin.get(next_, -1))
        self.origin |= risen
        return [id_ for id_ in leaving if id_ not in risen], list(risen)

    def forget(self, oldest: int) -> None:
        """Let go of what was overwritten."""
        self.origin = {id_: origin for id_, origin in self.origin.items() if id_ >= oldest}
