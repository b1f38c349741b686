"""Numbers of one column with the same decimals, so that they can be compared at a glance."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fixed:
    """Writes numbers with a fixed number of decimals, thousands separated."""

    decimals: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Fixed":
        """As many decimals as the largest of `values` needs to show three or four digits."""
        finite = [abs(value) for value in values if value is not None and np.isfinite(value)]
        largest = max(finite, default=0.0)
        for limit, decimals in ((0.1, 4 if largest else 2), (1.0, 3), (1_000.0, 2), (100_000.0, 1)):
            if largest < limit:
                return cls(decimals)
        return cls(0)

    def __call__(self, value: float | None) -> str:
        """The number, or a dash for none."""
        if value is None or not np.isfinite(value):
            return "–"
        text = f"{value:,.{self.decimals}f}"
        return text.replace("-", "", 1) if not float(text.replace(",", "")) else text  # no −0.00
