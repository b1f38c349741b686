"""SEMANTICS: retention of decay only. η keeps a share of what came by decay, and lets go of what insertion gave."""

import numpy as np
import pytest

import pser
from model import Rules
from strategies import append_both, as_prioritization, assert_same_index, index_pair, update_both

from .dumps import dump_index


def episode(length, capacity=None, **rules):
    settings = {"retain": "decayed", "alpha": 1.0, "eps": 0.0, "eta": 0.5, "rho": 0.5, "window": 5}
    index, model = index_pair(capacity or length, decay_on_insert=False, **{**settings, **rules})
    for i in range(length):
        append_both(index, model, [i == 0], priority=[1.0])
    return index, model


def test_the_papers_rule_is_the_default():
    assert pser.PSER().retain == "all"


def test_what_insertion_gave_is_not_retained():
    for retain, left in (("all", 0.5), ("decayed", 0.125)):
        index, model = episode(2, retain=retain)
        update_both(index, model, [0], [0.125])
        assert index.priority([0]).tolist() == [left]


def test_what_came_by_decay_is_retained():
    index, model = episode(3)
    update_both(index, model, [2], [8.0])
    assert index.priority([0, 1, 2]).tolist() == [2.0, 4.0, 8.0]
    update_both(index, model, [1], [0.125])
    assert index.priority([1]).tolist() == [2.0]  # η·4
    update_both(index, model, [1], [0.125])
    assert index.priority([1]).tolist() == [1.0]
    assert_same_index(index, model)


def test_a_decay_below_the_priority_is_remembered_for_the_next_update():
    index, model = episode(2)
    update_both(index, model, [1], [1.0])  # hands 0.5 to one that holds 1
    assert index.priority([0]).tolist() == [1.0]
    update_both(index, model, [0], [0.125])
    assert index.priority([0]).tolist() == [0.25]  # η·0.5, nothing of the 1
    assert_same_index(index, model)


def test_decayed_parts_add_up_to_the_cap_with_add():
    index, model = episode(2, decay="add")
    for _ in range(3):
        update_both(index, model, [1], [1.0])
    assert index.priority([0]).tolist() == [1.0]  # 0.5 + 0.5, capped at the largest priority ever
    update_both(index, model, [0], [0.0])
    assert index.priority([0]).tolist() == [0.5]
    assert_same_index(index, model)


def test_a_new_transition_in_the_slot_has_no_decayed_part():
    index, model = episode(3, capacity=3)
    update_both(index, model, [2], [8.0])
    append_both(index, model, [True], priority=[1.0])  # takes the slot of 0
    update_both(index, model, [3], [0.125])
    assert index.priority([3]).tolist() == [0.125]


def test_mass_kept_of_a_decay_counts_as_decay():
    index, model = episode(3)
    update_both(index, model, [2], [8.0])
    update_both(index, model, [1], [0.125])
    assert index.stats()["mass_from_decay"] == pytest.approx((2.0 + 2.0) / 12.0)
    assert index.stats()["mass_from_retention"] == 0.0


@pytest.mark.parametrize("decay", ["max", "add"])
def test_decayed_parts_are_saved(decay, tmp_path):
    index = pser.PriorityIndex(
        37, as_prioritization(Rules(retain="decayed", decay=decay)), num_streams=2, seed=0
    )
    rng = np.random.default_rng(0)

    def go_on(one, rng):
        for t in range(30):
            one.append(
                (rng.random(2) < 0.1) | (len(one) == 0), td_error=rng.normal(size=2) if t % 2 else None
            )
            one.update(one.sample(8)[0], rng.normal(size=8))

    go_on(index, rng)
    index.save(tmp_path / "index")
    loaded = pser.PriorityIndex.load(tmp_path / "index")
    assert dump_index(loaded) == dump_index(index)
    for one in (index, loaded):
        go_on(one, np.random.default_rng(1))
    assert dump_index(loaded) == dump_index(index)
