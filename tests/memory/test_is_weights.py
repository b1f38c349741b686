"""SEMANTICS: importance-sampling weights by batch and by memory."""

import numpy as np
import pytest

import pser
from strategies import append_both, index_pair, memory_pair


def filled(priorities, **rules):
    index, model = index_pair(len(priorities), decay_on_insert=False, **rules)
    for p in priorities:
        append_both(index, model, [True], priority=[p])
    return index, model


@pytest.mark.parametrize("beta", [0.0, 0.4, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
@pytest.mark.parametrize("weights", ["batch", "memory"])
def test_weights_follow_the_equation(beta, kind, weights):
    index, model = filled([0.5, 1.0, 2.0, 4.0, 4.0, 1e-3], kind=kind, weights=weights)
    for _ in range(10):
        ids, got = index.sample(5, beta=beta)
        assert got.dtype == np.float64
        assert ids.dtype == np.int64
        np.testing.assert_allclose(got, model.weights(ids.tolist(), beta), rtol=1e-12)


def test_weights_by_batch_are_one_at_most_and_the_largest_is_one():
    index, _ = filled([0.5, 1.0, 2.0, 4.0, 1e-3, 70.0], alpha=1.0)
    for _ in range(20):
        _, weights = index.sample(3, beta=0.7)
        assert weights.max() == 1.0
        assert weights.min() > 0.0


def test_weights_by_memory_are_divided_by_the_largest_any_transition_could_have():
    index, _ = filled([1.0, 1.0, 1.0, 1e-6], alpha=1.0, weights="memory")
    ids, weights = index.sample(16, beta=0.5)
    assert 3 not in ids.tolist()  # drawn about once in three million
    np.testing.assert_allclose(weights, np.full(16, 1e-3), rtol=1e-12)


def test_weights_by_memory_ignore_what_can_never_be_drawn():
    index, _ = filled([0.0, 1.0, 4.0], alpha=1.0, eps=0.0, weights="memory")
    ids, weights = index.sample(64, beta=1.0)
    np.testing.assert_allclose(weights, np.where(ids == 1, 1.0, 0.25), rtol=1e-12)


def test_weights_by_memory_forget_an_overwritten_smallest_priority():
    index, model = index_pair(2, alpha=1.0, weights="memory")
    for p in [1e-5, 1.0, 2.0]:
        append_both(index, model, [True], priority=[p])
    ids, weights = index.sample(32, beta=1.0)
    np.testing.assert_allclose(weights, np.where(ids == 1, 1.0, 0.5), rtol=1e-12)


def test_beta_one_corrects_the_sampling_bias_exactly():
    # E[w·x] under P, undone by β = 1, is proportional to the plain mean of x.
    index, model = filled([0.5, 1.0, 2.0, 4.0], alpha=0.7, weights="memory")
    probabilities = index.probabilities(np.arange(4))
    weights = np.array(model.weights([0, 1, 2, 3], 1.0))
    np.testing.assert_allclose(probabilities * weights, np.full(4, (probabilities * weights)[0]), rtol=1e-12)


def test_the_memory_gives_the_same_weights_and_the_probabilities():
    memory, model = memory_pair(8, pser.Array((1,), np.float32), alpha=0.6, weights="batch")
    for t in range(6):
        row = (np.float32([t]), t, 0.0, np.float32([t + 1]), False, False)
        memory.add(*row, priority=float(t + 1))
        model.add_row(0, *row, given=float(t + 1))
    batch = memory.sample(16, beta=0.4)
    probabilities = model.index.probabilities()
    ids = batch.ids.tolist()
    assert batch.weights.dtype == np.float32
    assert batch.probabilities.dtype == np.float64
    np.testing.assert_allclose(batch.weights, model.index.weights(ids, 0.4), rtol=1e-6)
    np.testing.assert_allclose(batch.probabilities, [probabilities[i] for i in ids], rtol=1e-12)


def test_annealing_is_linear_and_then_constant():
    beta = pser.Anneal(start=0.4, end=1.0, steps=100)
    assert beta(0) == pytest.approx(0.4)
    assert beta(50) == pytest.approx(0.7)
    assert beta(100) == pytest.approx(1.0)
    assert beta(10_000) == pytest.approx(1.0)
