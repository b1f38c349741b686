"""Updates of whole windows: decay along consecutive steps is that of each step alone."""

import numpy as np
import pytest

import pser
from strategies import append_both, assert_same_index, index_pair, update_both

CHAIN = 8
"""From so many consecutive steps on the kernel decays along them at once."""


def windows(rng, model, streams, count, longest):
    """Runs of steps of one stream each, wherever they lie: they may overlap, be cut, hold overwritten steps."""
    ids = []
    for _ in range(count):
        start = int(rng.integers(max(0, model.oldest_id - 5 * streams), model.next_id))
        ids += range(start, min(start + streams * int(rng.integers(1, longest)), model.next_id), streams)
    return ids


@pytest.mark.parametrize("streams", [1, 2, 5])
@pytest.mark.parametrize(
    "rules",
    [
        {"rho": 0.4, "window": 5, "eta": 0.7, "alpha": 0.5},
        {"rho": 0.9, "window": 20, "eta": 0.0, "alpha": 1.0},
        {"rho": 0.95, "window": 100, "eta": 0.3, "alpha": 0.6},
        {"rho": 0.5, "window": 10, "eta": 0.7, "alpha": 0.5, "eps": 0.0},
    ],
)
def test_windows_decay_as_their_steps_would_one_by_one(streams, rules):
    """Across blocks, episode starts, the ring's edge, the oldest step, and streams that are out of turn."""
    index, model = index_pair(40 * streams + 7, num_streams=streams, **rules)
    rng = np.random.default_rng(streams)
    for step in range(120):
        first = ((rng.random(streams) < 0.04) | (step == 0)).tolist()
        append_both(index, model, first, priority=rng.exponential(0.05, streams).tolist())
        if step % 50 == 49:
            append_both(index, model, [False], [int(rng.integers(streams))], priority=[0.01])
        if step % 6 == 5:
            ids = windows(rng, model, streams, count=3, longest=4 * CHAIN)
            scale = 10.0 ** rng.integers(-6, 2)
            errors = rng.exponential(scale, len(ids)) * (rng.random(len(ids)) < 0.7)
            update_both(index, model, ids, errors.tolist())
            assert_same_index(index, model)
    index.check_invariants()


def test_a_chain_raises_the_steps_that_lead_to_it_but_none_of_another_episode():
    index = pser.PriorityIndex(100, pser.PSER(alpha=1.0, eps=0.0, eta=0.0, rho=0.5, window=3), seed=0)
    starts = np.zeros(40, bool)
    starts[[0, 10]] = True
    index.append(starts, np.full(40, 0.01), stream=np.zeros(40, np.int64))
    index.update(np.arange(11, 11 + CHAIN), np.ones(CHAIN))  # one step before it, then an episode's start
    index.update(np.arange(30, 30 + CHAIN), 8.0 * (np.arange(CHAIN) == CHAIN - 1))
    held = index.priority(np.arange(40))
    np.testing.assert_array_equal(held[8:12], [0.01, 0.01, 0.5, 1.0])
    np.testing.assert_array_equal(held[29 + CHAIN - 3 : 30 + CHAIN], [1.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(held[26:30], 0.01)


def memory_of_one_episode():
    memory = pser.ReplayMemory(64, pser.Array((1,), np.float32), prioritization=pser.PSER(), seed=0)
    for _ in range(30):
        memory.add(np.zeros(1, np.float32), 0, 0.0, np.zeros(1, np.float32), False, False)
    return memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_rows_in_the_mask_are_updated(dtype):
    masked, plain = memory_of_one_episode(), memory_of_one_episode()
    ids, errors = np.arange(20).reshape(2, 10), np.linspace(0.0, 3.0, 20, dtype=dtype).reshape(2, 10)
    mask = np.ones((2, 10), bool)
    mask[0, :3] = mask[1, 7:] = False
    assert masked.update_priorities(ids, errors, mask=mask) == 14
    assert plain.update_priorities(ids[mask], errors[mask]) == 14
    everything = np.arange(30)
    np.testing.assert_array_equal(masked.priorities(everything), plain.priorities(everything))
    assert masked.stats() == plain.stats()
    # What the mask leaves out may be anything.
    assert masked.update_priorities(np.where(mask, ids, -1), np.where(mask, errors, np.nan), mask=mask) == 14


def test_a_masked_update_is_refused_as_any_other():
    memory = memory_of_one_episode()
    ids, mask = np.arange(20).reshape(2, 10), np.ones((2, 10), bool)
    before = memory.stats()
    with pytest.raises(pser.PserError, match="TD error must be finite"):
        memory.update_priorities(ids, np.full((2, 10), np.nan), mask=mask)
    with pytest.raises(pser.PserError, match="one shape"):
        memory.update_priorities(ids, np.zeros((2, 9)), mask=mask)
    with pytest.raises(pser.PserError, match="one shape"):
        memory.update_priorities(ids.reshape(-1), np.zeros(20), mask=mask.reshape(-1))
    assert memory.stats() == before
