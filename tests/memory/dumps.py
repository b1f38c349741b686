"""Everything that can be known about an index or a memory, to tell whether a call changed anything."""

import tempfile
from pathlib import Path

import numpy as np


def saved_bytes(thing) -> bytes:
    """The bytes of a fresh save: contents, priorities, ids, RNG, open episodes, pending steps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        thing.save(path)
        return path.read_bytes()


def dump_index(index) -> tuple:
    """All that an index lets one read, and its saved form."""
    ids = np.arange(index.oldest_id, index.next_id)
    return (
        len(index),
        index.next_id,
        index.oldest_id,
        index.max_priority,
        index.priority(ids).tobytes(),
        index.probabilities(ids).tobytes(),
        index.stats(),
        saved_bytes(index),
    )


def dump_memory(memory) -> tuple:
    """All that a memory lets one read, and its saved form."""
    stats = memory.stats()
    ids = np.arange(int(stats["added"]) - len(memory), int(stats["added"]))
    return len(memory), memory.max_priority, memory.priorities(ids).tobytes(), stats, saved_bytes(memory)
