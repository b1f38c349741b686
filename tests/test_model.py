"""The model by itself, against cases worked out by hand from the paper."""

import math

import pytest

from model import (
    Adaptive,
    IndexModel,
    MemoryModel,
    Rules,
    decay_add,
    decay_max,
    derived_window,
    is_weight,
    largest_weight,
    n_step_discount,
    n_step_return,
    probabilities_of,
    rank_masses,
    raw_priority,
    retained_priority,
    window_length,
)


@pytest.mark.parametrize(("rho", "window"), [(0.4, 5), (0.65, 10), (0.8, 20), (0.1, 2), (0.0, 0)])
def test_derived_window_gives_the_papers_values(rho, window):
    assert derived_window(rho) == window


def test_the_last_step_of_a_derived_window_still_carries_one_percent():
    for rho in (0.2, 0.4, 0.65, 0.8, 0.95):
        assert rho ** derived_window(rho) >= 0.01
        assert rho ** (derived_window(rho) + 1) < 0.01


def test_adaptive_window_grows_with_the_surprise_up_to_its_limit():
    window = Adaptive(floor=0.1, limit=4)
    assert window_length(window, 0.5, 0.15) == 0
    assert window_length(window, 0.5, 0.5) == 2  # 0.25 and 0.125 exceed 0.1, 0.0625 does not
    assert window_length(window, 0.5, 1e6) == 4


def test_single_rules_by_hand():
    assert raw_priority(-2.0, 0.5) == 2.5
    assert retained_priority(0.1, 0.7, 10.0) == 7.0
    assert retained_priority(8.0, 0.7, 10.0) == 8.0
    assert decay_max(0.3, [0.1, 0.4]) == 0.4
    assert decay_add(0.3, [0.1, 0.4], 10.0) == pytest.approx(0.8)
    assert decay_add(0.3, [0.1, 0.4], 0.5) == 0.5
    assert probabilities_of([1.0, 3.0]) == [0.25, 0.75]
    assert probabilities_of([0.0, 0.0]) == [0.5, 0.5]
    assert is_weight(0.25, 2, 0.5) == pytest.approx(math.sqrt(2.0))
    assert largest_weight([0.0, 0.25, 0.75], 3, 1.0) == pytest.approx(1 / 0.75)
    assert n_step_return([1.0, 2.0, 4.0], 0.5) == 3.0
    assert n_step_discount(3, 0.5, False) == 0.125
    assert n_step_discount(3, 0.5, True) == 0.0


def test_equal_ranks_share_their_mass():
    assert rank_masses([1.0, 3.0, 2.0], 1.0) == pytest.approx([1 / 3, 1.0, 1 / 2])
    assert rank_masses([1.0, 3.0, 3.0], 1.0) == pytest.approx([1 / 3, 0.75, 0.75])
    assert rank_masses([5.0, 5.0], 0.7)[0] == rank_masses([5.0, 5.0], 0.7)[1]


def test_max_keeps_an_earlier_decay_as_in_the_papers_figure():
    # Figure "max_is_good": a decay from T_7, then one from T_13; without max, T_7 would fall to ρ·p_8.
    rules = Rules(alpha=1.0, eps=0.0, eta=0.0, rho=0.5, window=None)
    model = IndexModel(20, rules)
    model.append_one(True, 0, 0.0)
    for _ in range(13):
        model.append_one(False, 0, 0.0)
    model.update([7], [1.0])
    assert [model.priority(i) for i in range(8)] == [0, 2**-6, 2**-5, 2**-4, 2**-3, 2**-2, 2**-1, 1.0]
    model.update([13], [1.0])
    assert [model.priority(i) for i in range(7, 14)] == [1.0, 2**-5, 2**-4, 2**-3, 2**-2, 2**-1, 1.0]


def test_eviction_cuts_the_chain_and_forgets_the_oldest():
    model = IndexModel(3, Rules(alpha=1.0, eps=0.0, rho=0.5, window=50))
    model.append([True], priority=[1.0])
    for _ in range(3):
        model.append([False], priority=[0.0])
    assert model.ids == [1, 2, 3]
    assert list(model.predecessors(3)) == [2, 1]
    model.update([1], [100.0])
    assert [model.priority(i) for i in model.ids] == [100.0, 0.0, 0.0]
    assert math.isnan(model.priority(0))


def test_streams_have_their_own_chains():
    model = IndexModel(10, Rules(), num_streams=2)
    model.append([True, True])
    model.append([False, False])
    model.append([False, True])
    assert list(model.predecessors(4)) == [2, 0]
    assert list(model.predecessors(5)) == []


def test_n_step_tail_is_flushed():
    memory = MemoryModel(10, Rules(), n_step=3, gamma=0.5)
    assert memory.add_row(0, "s0", 0, 1.0, "s1", False, False) == []
    assert memory.add_row(0, "s1", 1, 2.0, "s2", False, False) == []
    assert memory.add_row(0, "s2", 2, 4.0, "s3", False, False) == [0]
    assert memory.add_row(0, "s3", 3, 8.0, "s4", False, True) == [1, 2, 3]
    got = [(t.observation, t.reward, t.next_observation, t.discount) for t in memory.transitions.values()]
    assert got == [
        ("s0", 3.0, "s3", 0.125),
        ("s1", 6.0, "s4", 0.125),
        ("s2", 8.0, "s4", 0.25),
        ("s3", 8.0, "s4", 0.5),
    ]
    assert list(memory.index.predecessors(3)) == [2, 1, 0]
    memory.add_row(0, "r0", 0, 1.0, "r1", True, False)
    assert list(memory.index.predecessors(4)) == []
    assert memory.transitions[4].discount == 0.0
