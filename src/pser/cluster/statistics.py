"""The numbers to watch, of several shards as of one memory."""

from collections.abc import Sequence

import numpy as np

SUMS = (
    "size",
    "capacity",
    "added",
    "total_mass",
    "decayed_mass_seen",
    "decayed_mass_lost",
    "updates_applied",
    "updates_skipped_stale",
)
LARGEST = ("max_priority", "replays_max")
BY_SIZE = ("replays_mean", "never_replayed_share")


def merged_stats(shards: Sequence[dict[str, float]]) -> dict[str, float]:
    """What `ReplayMemory.stats` would say of all transitions, but for ages, which each shard counts for itself.

    Those are means over the shards, by their mass.
    """
    if len(shards) == 1:
        return shards[0]
    sizes = np.array([shard["size"] for shard in shards], np.float64)
    masses = np.array([shard["total_mass"] for shard in shards])
    shares = _shares(masses) if masses.sum() > 0.0 else _shares(sizes)
    merged: dict[str, float] = {}
    for name in shards[0]:
        values = np.array([shard[name] for shard in shards], np.float64)
        if name in SUMS:
            merged[name] = sum(shard[name] for shard in shards)
        elif name in LARGEST:
            merged[name] = max(shard[name] for shard in shards)
        elif name in BY_SIZE:
            merged[name] = float(_shares(sizes) @ values)
        elif name == "collapse":
            seen = merged["decayed_mass_seen"]
            merged[name] = merged["decayed_mass_lost"] / seen if seen > 0.0 else 0.0
        elif name == "effective_sample_size":  # (Σm)² / Σm², and Σm² of a shard is (its mass)² / its own
            some = values > 0.0
            merged[name] = float(1.0 / (shares[some] ** 2 / values[some]).sum()) if some.any() else 0.0
        else:
            merged[name] = float(shares @ values)
    return merged


def _shares(
    parts: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    total = parts.sum()
    return parts / total if total > 0.0 else np.full(len(parts), 1.0 / len(parts))
