"""What a record knows of the steps that lead to it: decay goes by it, and files that lack it are made whole."""

import numpy as np
import pytest

import pser
from strategies import append_both, assert_same_index, index_pair, update_both

LEAD = np.uint32(0b111111 << 24)
"""Its bits in a record's last four bytes."""
MOST_REPLAYS = (1 << 24) - 1


def histories(index):
    """The last field of every record, in place: blocks of 16 masses, 16 distances and 16 records."""
    (content,) = index.state_arrays().values()
    blocks = content.view(np.uint32).reshape(-1, 448 // 4)
    return blocks[:, 48:].reshape(-1, 16, 4)[:, :, 3]


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("window", [5, 30, 31, 32, 40])
def test_decay_goes_as_far_as_the_window_or_the_episode(window, streams):
    """Episodes shorter and longer than the longest lead that is told, and windows around it."""
    index, model = index_pair(
        1000, num_streams=streams, rho=0.99, window=window, eta=0.0, alpha=0.5, decay_on_insert=False
    )
    for step in range(120):
        first = [step in (0, 20, 21, 55)] * streams
        append_both(index, model, first, priority=[0.01] * streams)
    for id_ in range(model.next_id):  # each more than decays of the next one: what is furthest shows
        update_both(index, model, [id_], [1.02**id_])
    assert_same_index(index, model)


def test_steps_out_of_turn_are_met_in_their_own_order():
    index, model = index_pair(
        200, num_streams=2, rho=0.9, window=5, eta=0.0, alpha=0.5, decay_on_insert=False
    )
    for step in range(60):
        append_both(index, model, [step in (0, 50)] * 2, priority=[0.01] * 2)
        if step == 30:
            append_both(index, model, [False], [0], priority=[0.01])
    for id_ in range(56, 121, 3):
        update_both(index, model, [id_], [1.0])
        assert_same_index(index, model)


@pytest.mark.parametrize("added", [30, 90, 131])
@pytest.mark.parametrize("kept", [False, True])
def test_an_index_saved_without_leads_decays_as_if_it_had_them(added, kept, tmp_path):
    """As earlier versions saved it: nothing overwritten, some of it, and more than once."""

    def make():
        index = pser.PriorityIndex(64, pser.PSER(rho=0.9, window=20), num_streams=2, seed=0)
        rng = np.random.default_rng(0)
        for _ in range(added // 2):
            index.append(rng.random(2) < 0.03, rng.exponential(0.1, 2))
        return index

    index, saved = make(), make()
    if not kept:
        histories(saved)[...] &= ~LEAD
    saved.save(tmp_path / "index")
    loaded = pser.PriorityIndex.load(tmp_path / "index")
    for each in (index, loaded):
        each.update(np.arange(added - 20, added, 3), np.arange(7.0))
        each.update(np.arange(max(0, added - 60), added, 7)[:5], np.full(5, 2.0))
    np.testing.assert_array_equal(index.columns().priority, loaded.columns().priority)
    if kept:
        assert histories(index).tolist() == histories(loaded).tolist()


def test_replays_are_counted_up_to_the_most_that_fit_and_spoil_nothing_beside_them():
    index = pser.PriorityIndex(16, pser.PSER(eta=0.7, rho=0.5, window=3), seed=0)
    index.append(np.arange(8) == 0, np.full(8, 0.1), stream=np.zeros(8, np.int64))
    histories(index)[0, 4] += MOST_REPLAYS - 1
    for _ in range(3):
        index.update([4], [1.0])
    columns = index.columns()
    assert columns.replays.tolist() == [0, 0, 0, 0, MOST_REPLAYS, 0, 0, 0]
    np.testing.assert_allclose(columns.priority[1:5], np.array([0.125, 0.25, 0.5, 1.0]) * 1.0001, rtol=1e-3)
    assert columns.priority[0] == 0.1
    index.check_invariants()
