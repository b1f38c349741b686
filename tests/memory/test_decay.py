"""SEMANTICS: backward decay, MAX and ADD, and what decays."""

import numpy as np
import pytest

import pser
from strategies import append_both, assert_same_index, index_pair, update_both


def episode(length, capacity=None, priority=0.0, **rules):
    index, model = index_pair(capacity or length, decay_on_insert=False, **rules)
    for i in range(length):
        append_both(index, model, [i == 0], priority=[priority])
    return index, model


def test_max_decay_by_hand():
    index, model = episode(5, eps=0.0, eta=0.0, rho=0.5, window=5)
    update_both(index, model, [4], [8.0])
    np.testing.assert_array_equal(index.priority(np.arange(5)), [0.5, 1.0, 2.0, 4.0, 8.0])
    assert_same_index(index, model)


def test_max_decay_never_lowers_a_priority():
    index, model = episode(5, priority=3.0, eps=0.0, eta=0.0, rho=0.5, window=5)
    update_both(index, model, [4], [8.0])
    np.testing.assert_array_equal(index.priority(np.arange(5)), [3.0, 3.0, 3.0, 4.0, 8.0])


def test_max_keeps_the_earlier_of_two_decays():
    # The paper's figure: a decay from T_7, then one from T_13.
    index, model = episode(14, eps=0.0, eta=0.0, rho=0.5, window=None)
    update_both(index, model, [7], [1.0])
    update_both(index, model, [13], [1.0])
    np.testing.assert_array_equal(index.priority(np.arange(6, 10)), [0.5, 1.0, 2**-5, 2**-4])
    assert_same_index(index, model)


def test_add_decay_by_hand():
    index, model = episode(4, priority=1.0, eps=0.0, eta=0.0, rho=0.5, window=5, decay="add")
    update_both(index, model, [3], [8.0])
    np.testing.assert_array_equal(index.priority(np.arange(4)), [2.0, 3.0, 5.0, 8.0])
    assert_same_index(index, model)


def test_add_decay_is_capped_by_the_largest_priority_ever_recorded():
    index, model = episode(3, priority=1.0, eps=0.0, eta=0.0, rho=0.5, window=5, decay="add")
    update_both(index, model, [2], [4.0])
    for _ in range(20):
        update_both(index, model, [2], [3.9])
    np.testing.assert_array_equal(index.priority(np.arange(3)), [4.0, 4.0, 3.9])
    assert index.max_priority == 4.0
    assert_same_index(index, model)


def test_add_decay_cap_counts_priorities_recorded_long_ago():
    index, model = index_pair(3, eps=0.0, eta=0.0, rho=0.5, window=2, decay="add", decay_on_insert=False)
    append_both(index, model, [True], priority=[100.0])  # soon overwritten, still the largest ever
    for i in range(3):
        append_both(index, model, [i == 0], priority=[1.0])
    for _ in range(5):
        update_both(index, model, [3], [40.0])
    np.testing.assert_array_equal(index.priority(np.array([1, 2])), [51.0, 100.0])
    assert_same_index(index, model)


def test_add_decay_in_the_same_call_is_capped_by_that_calls_own_largest():
    index, model = episode(3, priority=1.0, eps=0.0, eta=0.0, rho=0.5, window=5, decay="add")
    update_both(index, model, [2], [64.0])
    # 1 + 32 and 1 + 16 exceed the old p_max of 1 but not the 64 that this call records.
    np.testing.assert_array_equal(index.priority(np.arange(3)), [17.0, 33.0, 64.0])


def test_fresh_td_error_decays_not_the_retained_value():
    index, model = episode(
        2, priority=10.0, eps=0.0, eta=0.9, rho=0.5, window=1, decay="add", decay_from="td"
    )
    update_both(index, model, [1], [0.0])
    np.testing.assert_allclose(index.priority(np.arange(2)), [10.0, 9.0], rtol=1e-14)
    update_both(index, model, [0], [0.0])
    update_both(index, model, [1], [1.0])
    np.testing.assert_allclose(index.priority(np.arange(2)), [9.5, 8.1], rtol=1e-14)


def test_decay_from_priority_decays_the_retained_value():
    index, model = index_pair(
        3, eps=0.0, eta=0.9, rho=0.5, window=2, decay_from="priority", decay_on_insert=False
    )
    for i, priority in enumerate([0.0, 0.0, 10.0]):
        append_both(index, model, [i == 0], priority=[priority])
    update_both(index, model, [2], [0.0])
    np.testing.assert_allclose(index.priority(np.arange(3)), [2.25, 4.5, 9.0], rtol=1e-14)
    assert_same_index(index, model)


def test_eps_decays_too():
    index, model = episode(2, eps=0.25, eta=0.0, rho=0.5, window=1)
    update_both(index, model, [1], [0.0])
    assert index.priority(np.arange(2)).tolist() == [0.125, 0.25]


@pytest.mark.parametrize("decay", ["max", "add"])
@pytest.mark.parametrize("rho", [0.0, 0.4, 0.65, 0.8, 0.99])
def test_decay_is_rho_to_the_number_of_steps(decay, rho):
    index, model = episode(12, eps=0.0, eta=0.0, rho=rho, window=8, decay=decay)
    update_both(index, model, [11], [0.75])
    got = index.priority(np.arange(12))
    expected = [0.0] * 3 + [0.75 * rho**steps for steps in range(8, 0, -1)] + [0.75]
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=0)
    assert_same_index(index, model)


def test_rho_zero_decays_nothing():
    index, model = episode(4, priority=0.5, rho=0.0, window=3, eta=0.0, eps=0.0)
    update_both(index, model, [3], [1.0])
    np.testing.assert_array_equal(index.priority(np.arange(4)), [0.5, 0.5, 0.5, 1.0])


def test_a_decay_does_not_decay_further_by_itself():
    # Only the sampled transition decays: a raised predecessor does not send its own share back.
    index, model = episode(4, eps=0.0, eta=0.0, rho=0.5, window=1)
    update_both(index, model, [3], [8.0])
    np.testing.assert_array_equal(index.priority(np.arange(4)), [0.0, 0.0, 4.0, 8.0])


def test_a_decayed_priority_changes_the_sampling_probability():
    index, model = episode(3, eps=0.0, eta=0.0, rho=0.5, window=1, alpha=1.0)
    update_both(index, model, [2], [2.0])
    np.testing.assert_allclose(index.probabilities(np.arange(3)), [0.0, 1 / 3, 2 / 3], rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.06, 0.3, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("streams", [1, 2])
def test_priorities_next_to_zero_decay_without_a_false_alarm(alpha, streams):
    """A number below 2.2e-308 has few digits; mass stays priority to the power alpha all the same."""
    rules = pser.PSER(alpha=alpha, eps=0.0, eta=0.0, rho=0.65, window=20)
    index = pser.PriorityIndex(40, rules, num_streams=streams, seed=0)
    for i in range(20):
        index.append([i == 0] * streams, priority=[0.0] * streams)
    for td_error in (3e-322, 7e-320, 1.7e-308, 1e-305):
        index.update([20 * streams - 1], [td_error])
        index.check_invariants()
        ids = np.arange(20 * streams)
        expected = [td_error * 0.65**k if k else td_error for k in range(20)][::-1]
        np.testing.assert_allclose(
            index.priority(ids[streams - 1 :: streams]), expected, rtol=1e-12, atol=5e-324
        )
