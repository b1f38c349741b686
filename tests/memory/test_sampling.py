"""SEMANTICS: stratified or plain sampling, its frequencies, its edges, its randomness."""

import numpy as np
import pytest
from scipy import stats

import pser
from strategies import append_both, assert_valid_draw, index_pair

KINDS = [
    {"kind": "pser", "alpha": 0.5},
    {"kind": "pser", "alpha": 1.0, "decay": "add"},
    {"kind": "pser", "alpha": 0.0},
    {"kind": "per", "alpha": 0.6},
    {"kind": "rank", "alpha": 0.7},
    {"kind": "uniform"},
]


def filled(count, capacity=None, seed=0, **rules):
    """`count` transitions in episodes of seven, TD errors from a heavy-tailed law."""
    index, model = index_pair(capacity or count, seed=seed, **rules)
    rng = np.random.default_rng(99)
    for i in range(count):
        append_both(index, model, [i % 7 == 0], td_error=[float(rng.standard_gamma(0.4))])
    return index, model


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("rules", KINDS, ids=lambda r: "-".join(str(v) for v in r.values()))
def test_frequencies_pass_a_chi_square_test(rules, stratified):
    index, model = filled(130, capacity=100, stratified=stratified, seed=3, **rules)
    batches, k = 4000, 25
    counts = np.zeros(130)
    for _ in range(batches):
        ids, _ = index.sample(k)
        np.add.at(counts, ids, 1)
    expected = np.array(list(model.probabilities().values())) * batches * k
    observed = counts[30:]
    assert counts[:30].sum() == 0
    keep = expected >= 5
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    # Stratified draws vary less than independent ones: only the upper tail can fail.
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-4


@pytest.mark.parametrize("rules", KINDS, ids=lambda r: "-".join(str(v) for v in r.values()))
def test_plain_draws_are_independent_and_not_too_even(rules):
    index, model = filled(20, stratified=False, seed=8, **rules)
    counts = np.zeros(20)
    for _ in range(2000):
        np.add.at(counts, index.sample(10)[0], 1)
    expected = np.array(list(model.probabilities().values())) * 20000
    p_value = stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue
    assert 1e-4 < p_value < 1 - 1e-4


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("rules", KINDS, ids=lambda r: "-".join(str(v) for v in r.values()))
def test_every_draw_lies_where_its_random_number_points(rules, stratified):
    index, model = filled(61, capacity=40, stratified=stratified, seed=17, **rules)
    rng = np.random.default_rng(17)
    for k in (1, 2, 7, 32, 100):
        ids, _ = index.sample(k)
        assert_valid_draw(model, ids.tolist(), rng.random(k).tolist())


def test_stratified_sampling_draws_once_from_each_slice_of_the_mass():
    index, model = index_pair(8, alpha=1.0)
    for _ in range(8):
        append_both(index, model, [True])
    for _ in range(20):
        assert sorted(index.sample(8)[0].tolist()) == list(range(8))


def test_plain_sampling_repeats_what_stratified_would_not():
    index, model = index_pair(8, alpha=1.0, stratified=False)
    for _ in range(8):
        append_both(index, model, [True])
    assert any(len(set(index.sample(8)[0].tolist())) < 8 for _ in range(20))


@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
def test_a_batch_larger_than_the_memory_is_allowed(kind):
    index, model = index_pair(10, kind=kind)
    for _ in range(3):
        append_both(index, model, [True])
    ids, weights = index.sample(100)
    assert set(ids.tolist()) == {0, 1, 2}
    assert weights.shape == (100,)


@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 255, 256, 257])
def test_draws_stay_inside_a_partly_filled_memory(kind, size):
    index, model = index_pair(300, kind=kind)
    for _ in range(size):
        append_both(index, model, [True])
    for _ in range(20):
        ids, _ = index.sample(64)
        assert ids.min() >= 0
        assert ids.max() < size


def test_priorities_of_very_different_size_keep_draws_in_range():
    index, model = index_pair(40, alpha=1.0, eps=0.0, decay_on_insert=False)
    for i in range(40):
        append_both(index, model, [True], priority=[0.0 if i % 2 else 10.0 ** (i - 30)])
    for _ in range(100):
        ids, weights = index.sample(64, beta=1.0)
        assert (ids % 2 == 0).all()
        assert np.isfinite(weights).all()


@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
def test_the_same_seed_draws_the_same_batches(kind):
    first, _ = filled(50, seed=5, kind=kind)
    second, _ = filled(50, seed=5, kind=kind)
    other, _ = filled(50, seed=6, kind=kind)
    draws = [[i.sample(16)[0].tolist() for _ in range(5)] for i in (first, second, other)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_sampling_moves_only_the_random_generator():
    index, _ = filled(50)
    before = (index.priority(np.arange(50)).tobytes(), index.max_priority, index.stats())
    for _ in range(10):
        index.sample(16)
    assert (index.priority(np.arange(50)).tobytes(), index.max_priority, index.stats()) == before


def test_no_global_random_state_is_used():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    index, _ = filled(20)
    index.sample(8)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    first = filled(20, seed=1)[0].sample(8)[0]
    np.random.seed(1)  # noqa: NPY002
    assert (filled(20, seed=1)[0].sample(8)[0] == first).all()


def test_a_sample_of_the_index_is_a_fresh_array():
    index, _ = filled(20)
    first, first_weights = index.sample(8)
    kept, kept_weights = first.copy(), first_weights.copy()
    index.sample(8)
    assert (first == kept).all()
    assert (first_weights == kept_weights).all()


def test_a_batch_is_reused_by_the_next_sample_unless_a_copy_is_asked_for():
    memory = pser.ReplayMemory(
        capacity=100, observation=pser.Array((2,), np.float32), action=pser.Array((), np.int64), seed=0
    )
    for t in range(100):
        memory.add(np.full(2, t, np.float32), t, float(t), np.full(2, t + 1, np.float32), False, False)
    fresh = memory.sample(4, beta=0.5, copy=True)
    kept = {
        name: getattr(fresh, name).copy() for name in ("observation", "action", "reward", "ids", "weights")
    }
    for _ in range(3):
        memory.sample(4, beta=0.5)
        memory.sample(4, beta=0.5, copy=True)
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(fresh, name), value)


@pytest.mark.parametrize("rule", [pser.PSER(eps=0.0, eta=0.0), pser.PER(eps=0.0)], ids=["pser", "per"])
def test_without_any_mass_every_transition_is_as_likely_as_another(rule):
    index = pser.PriorityIndex(50, rule, seed=0)
    for i in range(40):
        index.append([i == 0], [0.0])
    assert index.total_mass == 0.0
    ids, weights = index.sample(40, 0.5, positions=(np.arange(40) + 0.5) / 40)
    np.testing.assert_array_equal(ids, np.arange(40))
    np.testing.assert_array_equal(weights, np.ones(40))
    np.testing.assert_array_equal(index.probabilities(ids), np.full(40, 1 / 40))
    drawn, _ = index.sample(4000)
    assert len(np.unique(drawn)) == 40


@pytest.mark.parametrize("size", [16, 64, 512])
def test_a_position_on_the_edge_of_two_transitions_belongs_to_the_later_one(size):
    index = pser.PriorityIndex(size, pser.PER(alpha=1.0, eps=0.0), seed=0)
    for i in range(size):
        index.append([i == 0], [1.0])
    ids, _ = index.sample(size, 0.5, positions=np.arange(size) / size)
    np.testing.assert_array_equal(ids, np.arange(size))
