"""Several memories that draw as one: a shard by its mass, then a transition within it.

A stream lives in one shard, and with it its episodes and their decay. What one memory of the same transitions would
hold, the shards hold together: the same P(i), the same weights, the same largest priority. Two things are not the
same: which transitions are oldest, when shards fill unevenly, and ranks, which are refused.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pser.cluster.merging import merged_batch
from pser.errors import PserError, require
from pser.memory.arrays import Ints, Reals, as_ids, as_reals
from pser.memory.batch import Batch
from pser.memory.index import LARGEST_PRIORITY, PriorityIndex, as_rows, check_sample, generator
from pser.memory.prioritization import PER, Uniform
from pser.memory.replay import ReplayMemory

BELOW_ONE = float(np.nextafter(1.0, 0.0))


class Draw(NamedTuple):
    """Where the rows of a batch come from."""

    shard: Ints
    """The shard of each row."""
    position: Reals
    """The share of that shard's mass, in [0, 1), at which the row lies."""


def shares_of(masses: Reals, sizes: Ints) -> Reals:
    """The probability of each shard: its share of the mass; without any mass, of the transitions (Eq. 5)."""
    parts = masses if masses.sum() > 0.0 else sizes.astype(np.float64)
    shares: Reals = parts / parts.sum()
    return shares


def draw_at(positions: Reals, shares: Reals) -> Draw:
    """The shard that covers each position of the whole mass, and the position within it."""
    if len(shares) == 1:
        return Draw(np.zeros(len(positions), np.int64), positions)
    above = np.cumsum(shares)
    target = positions * above[-1]
    shard = np.searchsorted(above, target, side="right")  # passes over shards without mass
    shard = np.minimum(shard, int(np.flatnonzero(shares)[-1]))
    below = above[shard] - shares[shard]
    return Draw(shard, np.clip((target - below) / shares[shard], 0.0, BELOW_ONE))


def merged_weights(probabilities: Reals, least: float, beta: float) -> Reals:
    """w_i / max_j w_j = (P_min / P(i))^β (Brittain et al. 2019, Eq. 11), N being the same on both sides."""
    weights: Reals = (least / probabilities) ** beta
    return weights


class Shards:
    """Priority indexes that draw as one. The id of row i of shard k is i·K + k, for K shards."""

    def __init__(
        self, shards: Sequence[PriorityIndex], seed: int | np.random.Generator | None = None
    ) -> None:
        """The shards, with one prioritization, and the seed of the draws."""
        if not shards:
            raise PserError("there must be at least one shard, got none: pass a list of them")
        rules = {shard.prioritization for shard in shards}
        if len(rules) > 1:
            raise PserError(f"shards must share one prioritization, got {len(rules)}: make them alike")
        self.prioritization = shards[0].prioritization
        if len(shards) > 1 and isinstance(self.prioritization, PER) and self.prioritization.variant == "rank":
            raise PserError(
                f"ranks are known within one shard only, got {len(shards)} shards: use variant='proportional'"
            )
        self._shards = tuple(shards)
        self._rng = generator(seed)
        self.share_max_priority()

    def __len__(self) -> int:
        """Transitions in all shards."""
        return sum(len(shard) for shard in self._shards)

    @property
    def total_mass(self) -> float:
        """Σ p^α over all shards."""
        return float(self._masses().sum())

    @property
    def max_priority(self) -> float:
        """The largest priority ever recorded in any shard."""
        return max(shard.max_priority for shard in self._shards)

    def share_max_priority(self) -> None:
        """Let every shard know the largest priority of all: new transitions take it, and ADD is capped at it.

        Call it after transitions were added to a shard with priorities of their own.
        """
        largest = self.max_priority
        for shard in self._shards:
            shard.raise_max_priority(largest)

    def ids_of(self, shard: int, rows: Any) -> Ints:
        """The ids, among all shards, of what a shard calls `rows`."""
        return as_ids(rows) * len(self._shards) + shard

    def sample(self, batch_size: int, beta: float = 0.5, positions: Any = None) -> tuple[Ints, Reals]:
        """`batch_size` ids drawn with replacement by P(i) over all shards, and their importance-sampling weights.

        With `positions`, `batch_size` numbers in [0, 1): the ids at these shares of the mass of all shards.
        """
        draw, shares = self._draw(batch_size, beta, positions)
        ids, probabilities = np.empty(batch_size, np.int64), np.empty(batch_size)
        for k, rows in _rows_by_shard(draw.shard):
            within, _ = self._shards[k].sample(len(rows), beta, positions=draw.position[rows])
            ids[rows] = self.ids_of(k, within)
            probabilities[rows] = shares[k] * self._shards[k].probabilities(within)
        return ids, self._weights(probabilities, shares, beta)

    def probabilities(self, ids: Any) -> Reals:
        """P(i) over all shards as of now; NaN for ids that were overwritten."""
        ids = as_ids(ids).reshape(-1)
        shares = self._shares()
        out = np.empty(len(ids))
        for k, shard in enumerate(self._shards):
            rows = np.flatnonzero(ids % len(self._shards) == k)
            out[rows] = shares[k] * shard.probabilities(ids[rows] // len(self._shards))
        return out

    def update(self, ids: Any, td_errors: Any) -> int:
        """Set the priorities of sampled transitions from their TD errors, and decay them within their shards.

        Ids overwritten meanwhile are skipped. Returns how many rows were applied.
        """
        ids = as_ids(ids).reshape(-1)
        deltas = np.abs(as_rows(as_reals(td_errors, "td_errors"), len(ids), "td_errors"))
        shard, within = ids % len(self._shards), ids // len(self._shards)
        self._check_update(ids, deltas)
        if len(self._shards) > 1 and not isinstance(self.prioritization, Uniform):
            # All own updates come before all decays, so ADD's cap is known to every shard first.
            oldest = np.array([part.oldest_id for part in self._shards])
            live = deltas[within >= oldest[shard]]
            if live.size:
                self._raise_max_priority(float(live.max()) + self.prioritization.eps)
        applied = 0
        for k, rows in _rows_by_shard(shard):
            applied += self._shards[k].update(within[rows], deltas[rows])
        return applied

    def _check_update(self, ids: Ints, deltas: Reals) -> None:
        """What any shard would refuse is refused before one of them is changed."""
        written = np.array([part.next_id for part in self._shards])
        unknown = (ids < 0) | (ids // len(self._shards) >= written[ids % len(self._shards)])
        if unknown.any():
            raise PserError(
                f"id {ids[unknown][0]} was never written: pass ids that sample returned, of the same shards"
            )
        wrong = ~(deltas <= LARGEST_PRIORITY)
        require(
            not wrong.any(),
            f"TD errors must be finite and at most {LARGEST_PRIORITY}",
            deltas[wrong][:1],
            "check the loss",
        )

    def _raise_max_priority(self, priority: float) -> None:
        for shard in self._shards:
            shard.raise_max_priority(min(priority, LARGEST_PRIORITY))

    def _draw(self, batch_size: int, beta: float, positions: Any) -> tuple[Draw, Reals]:
        check_sample(batch_size, beta)
        if not len(self):
            raise PserError(
                f"cannot sample {batch_size} transitions from {len(self._shards)} empty shards: add some first"
            )
        if positions is None:
            at = self._rng.random(batch_size)
            if self.prioritization.stratified:
                at = (np.arange(batch_size) + at) / batch_size
        else:
            at = as_rows(as_reals(positions, "positions"), int(batch_size), "positions")
            if not ((at >= 0.0) & (at < 1.0)).all():
                raise PserError("a position must be from 0 to below 1: divide the mass wanted by total_mass")
        shares = self._shares()
        return draw_at(at, shares), shares

    def _weights(self, probabilities: Reals, shares: Reals, beta: float) -> Reals:
        """With the shares that were drawn with: should a shard change meanwhile, its rows stay unbiased."""
        least = float(probabilities.min())
        if not isinstance(self.prioritization, Uniform) and self.prioritization.weights == "memory":
            least = min(
                share * least_probability(shard)
                for share, shard in zip(shares, self._shards, strict=True)
                if share
            )
        return merged_weights(probabilities, least, beta)

    def _masses(self) -> Reals:
        return np.array([shard.total_mass for shard in self._shards])

    def _shares(self) -> Reals:
        return shares_of(self._masses(), np.array([len(shard) for shard in self._shards]))


def _rows_by_shard(shard: Ints) -> list[tuple[int, Ints]]:
    """(shard, its rows of the batch), for the shards that have any."""
    return [(int(k), np.flatnonzero(shard == k)) for k in np.unique(shard)]


def least_probability(shard: PriorityIndex) -> float:
    """The smallest positive P(i) within a shard: a weight with β = 1 is P_min / P(i)."""
    ids, weights = shard.sample(1, 1.0, positions=[0.0])
    return float(weights[0] * shard.probabilities(ids)[0])


class MemoryShards(Shards):
    """Replay memories that draw as one: batches of them all, with the ids of `Shards`."""

    def __init__(
        self, memories: Sequence[ReplayMemory], seed: int | np.random.Generator | None = None
    ) -> None:
        """The memories, alike in all but their content, and the seed of the draws."""
        super().__init__([memory.index for memory in memories], seed)
        self._memories = tuple(memories)

    def sample_batch(self, batch_size: int, beta: float = 0.5, positions: Any = None) -> Batch:
        """Draw transitions of all shards with replacement by P(i); the batch's arrays are its own."""
        draw, shares = self._draw(batch_size, beta, positions)
        parts = []
        for k, rows in _rows_by_shard(draw.shard):
            part = self._memories[k].sample(len(rows), beta, positions=draw.position[rows])
            parts.append(
                (
                    rows,
                    part._replace(ids=self.ids_of(k, part.ids), probabilities=shares[k] * part.probabilities),
                )
            )
        batch = merged_batch(parts, batch_size)
        weights = self._weights(batch.probabilities, shares, beta)
        return batch._replace(weights=weights.astype(np.float32))
