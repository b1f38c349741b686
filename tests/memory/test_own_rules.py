"""SEMANTICS, second round: what a rule of one's own is made of: given priorities, predecessors, positions."""

import numpy as np
import pytest

import pser
from pser.errors import PserError
from strategies import append_both, assert_same_index, index_pair, set_both, update_both

from .dumps import dump_index

RULES = {"window": 5, "rho": 0.5, "eta": 0.7, "eps": 0.0, "alpha": 1.0, "decay_on_insert": False}


def episode(length, capacity=None, **rules):
    index, model = index_pair(capacity or length, **{**RULES, **rules})
    for i in range(length):
        append_both(index, model, [i == 0], priority=[1.0])
    return index, model


def test_set_priorities_sets_the_raw_priority_without_retention_or_decay():
    index, model = episode(4)
    assert set_both(index, model, [3, 1], [8.0, 0.25]) == 2
    assert index.priority([0, 1, 2, 3]).tolist() == [1.0, 0.25, 1.0, 8.0]
    assert index.stats()["replays_max"] == 0
    assert_same_index(index, model)


def test_set_priorities_raises_the_largest_priority():
    index, model = episode(2, capacity=3)
    set_both(index, model, [0], [8.0])
    set_both(index, model, [0], [2.0])
    assert index.max_priority == 8.0
    append_both(index, model, [False])
    assert index.priority([2]).tolist() == [8.0]


def test_set_priorities_skips_stale_ids_and_takes_the_larger_of_two():
    index, model = episode(6, capacity=4)
    assert set_both(index, model, [0, 5, 5, 1], [3.0, 2.0, 4.0, 9.0]) == 2
    assert index.priority([5]).tolist() == [4.0]
    assert index.max_priority == 4.0
    assert (index.stats()["updates_applied"], index.stats()["updates_skipped_stale"]) == (2, 2)


@pytest.mark.parametrize(
    ("ids", "priorities"),
    [
        ([0, 1], [1.0, -0.5]),
        ([0, 1], [1.0, float("nan")]),
        ([0, 1], [1.0, 1e101]),
        ([0, 9], [1.0, 1.0]),
        ([0, -1], [1.0, 1.0]),
        ([0, 1], [1.0]),
        ([0.5], [1.0]),
        ([0], ["a"]),
    ],
    ids=str,
)
def test_a_bad_set_is_refused_and_changes_nothing(ids, priorities):
    index, _ = episode(4)
    before = dump_index(index)
    with pytest.raises(PserError, match=":"):
        index.set_priorities(ids, priorities)
    assert dump_index(index) == before


def test_predecessors_end_where_the_episode_began():
    index, model = episode(3, capacity=8)
    for i in range(3):
        append_both(index, model, [i == 0])
    assert index.predecessors([2, 4, 3], 3).tolist() == [[1, 0, -1], [3, -1, -1], [-1, -1, -1]]
    assert index.predecessors([], 3).shape == (0, 3)


def test_predecessors_end_where_the_memory_ends():
    index, _ = episode(7, capacity=4)
    assert index.predecessors([6, 4, 3, 2, 0], 4).tolist() == [
        [5, 4, 3, -1],
        [3, -1, -1, -1],
        [-1, -1, -1, -1],
        [-1, -1, -1, -1],  # overwritten itself
        [-1, -1, -1, -1],
    ]


def test_predecessors_are_of_the_same_stream():
    index, model = index_pair(20, num_streams=3, **RULES)
    for i in range(3):
        append_both(index, model, [i == 0] * 3)
    append_both(index, model, [False, False], stream=[2, 2])
    assert index.predecessors([10, 6], 5).tolist() == [[9, 8, 5, 2, -1], [3, 0, -1, -1, -1]]


@pytest.mark.parametrize("steps", [0, -1, 1.5, "2", None, True, 2**40])
def test_a_bad_number_of_steps_is_refused(steps):
    index, _ = episode(3)
    with pytest.raises(PserError, match="steps"):
        index.predecessors([0], steps)


def test_positions_are_places_of_the_mass_and_use_no_random_number():
    index, model = index_pair(4, **RULES)
    for p in (1.0, 2.0, 1.0, 4.0):
        append_both(index, model, [True], priority=[p])
    before = index.state()["rng"]
    ids, weights = index.sample(6, 1.0, positions=[0.0, 0.13, 0.374, 0.376, 0.51, 0.999999])
    assert ids.tolist() == [0, 1, 1, 2, 3, 3]
    np.testing.assert_allclose(weights, [1.0, 0.5, 0.5, 1.0, 0.25, 0.25])
    assert index.state()["rng"] == before


@pytest.mark.parametrize(
    "positions", [[0.0, 1.0], [-0.1, 0.5], [float("nan"), 0.5], [0.5], [0.1, 0.2, 0.3], ["a", "b"]], ids=str
)
def test_bad_positions_are_refused_and_change_nothing(positions):
    index, _ = episode(3)
    before = dump_index(index)
    with pytest.raises(PserError, match=":"):
        index.sample(2, positions=positions)
    assert dump_index(index) == before


def test_total_mass_is_the_sum_of_all_masses():
    index, model = index_pair(4, **{**RULES, "alpha": 0.5})
    assert index.total_mass == 0.0
    for p in (1.0, 4.0, 9.0, 16.0, 25.0):
        append_both(index, model, [True], priority=[p])
    assert index.total_mass == 2 + 3 + 4 + 5
    index.set_priorities([1], [0.0])
    assert index.total_mass == 3 + 4 + 5


def test_raise_max_priority_is_what_new_transitions_take():
    index, model = episode(2, capacity=4)
    for priority in (3.0, 2.0):
        index.raise_max_priority(priority)
        model.raise_max_priority(priority)
    assert index.max_priority == 3.0
    append_both(index, model, [False])
    assert index.priority([0, 1, 2]).tolist() == [1.0, 1.0, 3.0]


@pytest.mark.parametrize("priority", [-1.0, float("nan"), float("inf"), 1e101, "1", None, True])
def test_a_bad_largest_priority_is_refused(priority):
    index, _ = episode(2)
    with pytest.raises(PserError, match="priority"):
        index.raise_max_priority(priority)
    assert index.max_priority == 1.0


def test_a_rule_made_of_these_methods_equals_psers_own():
    """Algorithm 1 in Python on an index that neither retains nor decays, beside the kernel's."""
    eta, rho, window = 0.7, 0.4, 5
    own = pser.PriorityIndex(50, pser.PSER(eta=0.0, window=0), seed=3)
    built_in = pser.PriorityIndex(50, pser.PSER(eta=eta, rho=rho, window=window), seed=3)
    rng = np.random.default_rng(0)
    for t in range(300):
        for index in (own, built_in):
            index.append([t % 23 == 0])
        (ids, _), (same, _) = own.sample(1), built_in.sample(1)
        assert ids.tolist() == same.tolist()
        fresh = np.abs(rng.normal(size=1)) + 1e-4
        built_in.update(ids, fresh - 1e-4)
        own.set_priorities(ids, np.maximum(fresh, eta * own.priority(ids)))
        earlier = own.predecessors(ids, window)[0]
        earlier = earlier[earlier >= 0]
        decayed = fresh * rho ** np.arange(1, len(earlier) + 1)
        own.set_priorities(earlier, np.maximum(decayed, own.priority(earlier)))
        held = np.arange(own.oldest_id, own.next_id)
        np.testing.assert_allclose(own.priority(held), built_in.priority(held), rtol=1e-12)


def test_setting_a_priority_forgets_what_came_by_decay():
    index, model = episode(3, retain="decayed", eta=1.0)
    update_both(index, model, [2], [8.0])
    set_both(index, model, [1], [0.5])
    update_both(index, model, [1], [0.25])
    assert index.priority([1]).tolist() == [0.25]
    assert_same_index(index, model)
