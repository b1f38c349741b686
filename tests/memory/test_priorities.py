"""SEMANTICS: raw priority, sampling probability, where decay and η act, η, zero mass."""

import numpy as np
import pytest

import pser
from strategies import append_both, assert_same_index, index_pair, update_both


def filled(capacity=8, count=8, **rules):
    """One long episode with priorities 1..count, given on insertion without decay."""
    index, model = index_pair(capacity, decay_on_insert=False, **rules)
    for i in range(count):
        append_both(index, model, [i == 0], priority=[float(i + 1)])
    return index, model


def test_raw_priority_is_absolute_td_error_plus_eps_in_float64():
    index, model = filled(eps=1e-4, eta=0.0, window=0)
    update_both(index, model, [0, 1, 2], [-0.1, 0.1, 0.0])
    got = index.priority(np.array([0, 1, 2]))
    assert got.dtype == np.float64
    assert got.tolist() == [0.1 + 1e-4, 0.1 + 1e-4, 1e-4]


def test_eps_is_one_ten_thousandth_unless_set():
    assert pser.PSER().eps == 1e-4
    assert pser.PER().eps == 1e-4


def test_defaults_are_the_papers():
    rules = pser.PSER()
    assert (rules.alpha, rules.eta, rules.rho, rules.window, rules.decay) == (0.5, 0.7, 0.4, 5, "max")
    assert (rules.decay_from, rules.stratified, rules.weights) == ("td", True, "batch")
    assert pser.PER().alpha == 0.6
    assert pser.PER().variant == "proportional"


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["pser", "per"])
def test_sampling_probability_is_p_to_the_alpha_over_the_sum(alpha, kind):
    index, model = filled(kind=kind, alpha=alpha)
    p = np.arange(1.0, 9.0)
    np.testing.assert_allclose(index.probabilities(np.arange(8)), p**alpha / (p**alpha).sum(), rtol=1e-14)
    assert_same_index(index, model)


def test_probabilities_count_only_the_transitions_now_in_memory():
    index, model = filled(capacity=3, count=8, alpha=1.0)
    np.testing.assert_allclose(index.probabilities(np.array([5, 6, 7])), np.array([6, 7, 8]) / 21, rtol=1e-14)
    assert_same_index(index, model)


def test_settings_act_on_the_raw_priority_never_on_its_power():
    index, model = filled(alpha=0.5, eps=0.0, eta=0.7, rho=0.4, window=1)
    update_both(index, model, [7], [0.01])
    # On p^α the retained value would be 8·0.49, the decayed one 0.16·(…): the raw rules say otherwise.
    assert index.priority(np.array([7]))[0] == pytest.approx(0.7 * 8.0, rel=1e-14)
    update_both(index, model, [7], [100.0])
    assert index.priority(np.array([6]))[0] == pytest.approx(0.4 * 100.0, rel=1e-14)
    assert_same_index(index, model)


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.7, 1.0])
def test_eta_keeps_a_part_of_the_previous_priority(eta):
    index, model = filled(eps=0.0, eta=eta, window=0)
    update_both(index, model, [7, 3], [0.0, 100.0])
    np.testing.assert_allclose(index.priority(np.array([7, 3])), [eta * 8.0, 100.0], rtol=1e-14)
    update_both(index, model, [7], [0.0])
    np.testing.assert_allclose(index.priority(np.array([7])), [eta * eta * 8.0], rtol=1e-14)


def test_eta_zero_switches_retention_off():
    index, model = filled(eps=1e-4, eta=0.0, window=0)
    update_both(index, model, [7], [0.0])
    assert index.priority(np.array([7]))[0] == 1e-4


def test_eta_one_never_lets_a_priority_fall():
    index, model = filled(eta=1.0, window=0)
    update_both(index, model, list(range(8)), [0.0] * 8)
    np.testing.assert_allclose(index.priority(np.arange(8)), np.arange(1.0, 9.0), rtol=1e-14)


def test_per_has_no_eta_and_no_decay():
    index, model = filled(kind="per", eps=0.0)
    update_both(index, model, [7], [0.5])
    np.testing.assert_array_equal(index.priority(np.arange(8)), [1, 2, 3, 4, 5, 6, 7, 0.5])


def test_uniform_keeps_every_priority_at_one():
    index, model = filled(kind="uniform")
    assert update_both(index, model, [0, 1, 1], [5.0, 6.0, 7.0]) == 3
    np.testing.assert_array_equal(index.priority(np.arange(8)), np.ones(8))
    np.testing.assert_allclose(index.probabilities(np.arange(8)), np.full(8, 1 / 8), rtol=1e-15)


def test_rank_based_probability_is_the_inverse_rank_to_the_alpha():
    index, model = filled(kind="rank", alpha=0.7)
    mass = (1.0 / np.arange(8, 0, -1)) ** 0.7
    np.testing.assert_allclose(index.probabilities(np.arange(8)), mass / mass.sum(), rtol=1e-13)
    update_both(index, model, [0], [1000.0])
    assert_same_index(index, model)


def test_rank_based_ties_share_their_ranks():
    index, model = index_pair(4, kind="rank", alpha=1.0)
    append_both(index, model, [True], priority=[2.0])
    append_both(index, model, [True], priority=[2.0])
    append_both(index, model, [True], priority=[1.0])
    shared = (1 + 1 / 2) / 2
    expected = np.array([shared, shared, 1 / 3]) / (1 + 1 / 2 + 1 / 3)
    np.testing.assert_allclose(index.probabilities(np.arange(3)), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
def test_all_priorities_equal_samples_uniformly(kind):
    index, model = index_pair(7, kind=kind)
    for i in range(7):
        append_both(index, model, [i == 0])
    np.testing.assert_allclose(index.probabilities(np.arange(7)), np.full(7, 1 / 7), rtol=1e-13)
    _, weights = index.sample(32, beta=1.0)
    np.testing.assert_allclose(weights, np.ones(32), rtol=1e-12)


@pytest.mark.parametrize("kind", ["pser", "per"])
@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("weights", ["batch", "memory"])
def test_zero_mass_samples_uniformly(kind, stratified, weights):
    index, model = index_pair(5, kind=kind, eps=0.0, stratified=stratified, weights=weights)
    for _ in range(7):
        append_both(index, model, [True], priority=[0.0])
    assert_same_index(index, model)
    np.testing.assert_allclose(index.probabilities(np.arange(2, 7)), np.full(5, 0.2), rtol=1e-14)
    drawn = set()
    for _ in range(40):
        ids, is_weights = index.sample(8, beta=0.5)
        drawn.update(ids.tolist())
        np.testing.assert_allclose(is_weights, np.ones(8), rtol=1e-12)
    assert drawn == {2, 3, 4, 5, 6}


def test_mass_returns_after_it_was_zero():
    index, model = index_pair(5, eps=0.0, eta=0.0, window=0)
    for _ in range(5):
        append_both(index, model, [True], priority=[0.0])
    update_both(index, model, [3], [2.0])
    ids, _ = index.sample(16)
    assert set(ids.tolist()) == {3}
    update_both(index, model, [3], [0.0])
    assert len(set(index.sample(64)[0].tolist())) == 5


def test_a_zero_priority_is_never_drawn_while_others_have_mass():
    index, model = index_pair(64, eps=0.0, eta=0.0, window=0, alpha=0.5)
    for i in range(64):
        append_both(index, model, [True], priority=[float(i % 7 == 3)])
    for _ in range(50):
        ids, _ = index.sample(32)
        assert all(i % 7 == 3 for i in ids.tolist())


def test_alpha_zero_is_uniform_even_where_a_priority_is_zero():
    index, model = index_pair(4, alpha=0.0, eps=0.0)
    append_both(index, model, [True], priority=[0.0])
    append_both(index, model, [True], priority=[9.0])
    assert index.probabilities(np.arange(2)).tolist() == [0.5, 0.5]
    assert_same_index(index, model)
