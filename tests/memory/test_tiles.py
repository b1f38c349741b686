"""Sixteen steps of one stream lie together in the index: decay, draws and ids are as if they did not."""

import numpy as np
import pytest

import pser
from model import cell_of
from strategies import append_both, assert_same_index, assert_valid_draw, index_pair, update_both


@pytest.mark.parametrize("streams", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("left_over", [0, 1, 17])
@pytest.mark.parametrize("window", [5, 20, 100])
def test_decay_reaches_the_same_predecessors_however_many_streams_there_are(streams, left_over, window):
    """Lockstep, episode starts, steps out of turn, the ring's edge, and what was overwritten."""
    capacity = 3 * 16 * streams + left_over
    rules = {"rho": 0.95, "window": window, "eta": 0.3, "alpha": 0.5}
    index, model = index_pair(capacity, num_streams=streams, **rules)
    rng = np.random.default_rng(streams)
    for step in range(150):
        first = ((rng.random(streams) < 0.02) | (step == 0)).tolist()
        append_both(index, model, first, priority=[0.01] * streams)
        if step % 50 == 49:  # one stream comes alone, and the others are out of turn from here on
            append_both(index, model, [False], [int(rng.integers(streams))], priority=[0.01])
        if step % 10 == 9:
            ids = rng.integers(max(0, model.oldest_id - 3), model.next_id, 3).tolist()
            update_both(index, model, ids, rng.exponential(1.0, 3).tolist())
    assert_same_index(index, model)


@pytest.mark.parametrize(("capacity", "streams"), [(48, 3), (100, 3), (31, 2), (1000, 8), (64, 1)])
def test_draws_lie_along_the_mass_stream_by_stream(capacity, streams):
    index, model = index_pair(capacity, num_streams=streams, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(capacity // streams + 5):
        append_both(index, model, [False] * streams, priority=rng.random(streams).tolist())
    uniforms = np.random.default_rng(1).random(200)
    ids, _ = index.sample(200)
    assert_valid_draw(model, ids.tolist(), uniforms.tolist())


@pytest.mark.parametrize(("capacity", "streams"), [(48, 3), (100, 3), (64, 1), (1000, 7), (15, 2)])
def test_every_slot_has_one_cell(capacity, streams):
    cells = [cell_of(slot, capacity, streams) for slot in range(capacity)]
    assert sorted(cells) == list(range(capacity))
    tiled = capacity // (16 * streams) * 16 * streams
    for slot in range(
        streams, tiled
    ):  # the step before lies beside it, or ends the block of its stream before
        before, here = cells[slot - streams], cells[slot]
        assert here - before == 1 if here % 16 else here // 16 - before // 16 == streams


@pytest.mark.parametrize("steps", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("retain", ["all", "decayed"])
def test_a_partly_filled_index_of_streams_is_saved_and_goes_on(steps, retain, tmp_path):
    def fill(index, begin, end):
        rng = np.random.default_rng(begin)
        for _ in range(begin, end):
            index.append(rng.random(5) < 0.1, td_error=rng.normal(size=5))
            index.update(rng.integers(0, index.next_id, 4), rng.normal(size=4))

    rule = pser.PSER(rho=0.8, retain=retain)
    whole = pser.PriorityIndex(170, rule, num_streams=5, seed=0)
    fill(whole, 0, steps)
    whole.save(tmp_path / "index")
    loaded = pser.PriorityIndex.load(tmp_path / "index")
    loaded.check_invariants()
    for index in (whole, loaded):
        fill(index, steps, steps + 40)
    loaded.check_invariants()
    ids, weights = whole.sample(50)
    again, same = loaded.sample(50)
    assert ids.tolist() == again.tolist()
    assert weights.tolist() == same.tolist()
