"""What a rule of one's own needs is on the memory itself, and is that of its index."""

import numpy as np
import pytest

import pser
from pser.errors import PserError

from .dumps import dump_memory


def memory():
    made = pser.ReplayMemory(20, pser.Array((), np.float32), seed=0)
    for t in range(12):
        made.add(float(t), t, 1.0, float(t + 1), False, t % 5 == 4)
    return made


def test_positions_name_the_transitions_at_shares_of_the_mass():
    one = memory()
    assert one.set_priorities(np.arange(12), np.arange(12.0) ** 2) == 12
    before = dump_memory(one)
    at = (np.arange(200) + 0.5) / 200
    batch = one.sample(200, positions=at)
    ids, weights = one.index.sample(200, positions=at)
    assert batch.ids.tolist() == ids.tolist()
    np.testing.assert_allclose(batch.weights, weights, rtol=1e-6)
    assert (batch.action == batch.ids).all()
    assert np.bincount(batch.ids, minlength=12) / 200 == pytest.approx(np.arange(12) / 66, abs=0.01)
    assert dump_memory(one) == before  # not even the random generator moved


@pytest.mark.parametrize("positions", [[0.5], [0.5, 1.0], [-0.1, 0.5], [np.nan, 0.5], ["a", "b"]])
def test_positions_out_of_range_are_refused(positions):
    one = memory()
    before = dump_memory(one)
    with pytest.raises(PserError):
        one.sample(2, positions=positions)
    assert dump_memory(one) == before


def test_predecessors_total_mass_and_the_largest_priority_are_those_of_the_index():
    one = memory()
    assert one.predecessors([6, 8, 11], 3).tolist() == [[5, -1, -1], [7, 6, 5], [10, -1, -1]]
    assert one.total_mass == one.index.total_mass > 0.0
    one.raise_max_priority(7.5)
    assert one.max_priority == 7.5
    one.add(0.0, 0, 0.0, 1.0, False, False)
    assert one.priorities([12]).tolist() == [7.5]
