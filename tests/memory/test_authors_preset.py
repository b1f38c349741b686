"""SEMANTICS: with α = 1 and √(Huber(δ) + 1e-10) for a priority, the memory does what the authors' code does.

Their code keeps one number per transition, the exponentiated priority, and lets η and decay act on it.
That is restated here in a straight line: no batch, no ring, no model.
"""

import math

import numpy as np
import pytest

import pser


def huber(delta):
    return 0.5 * delta * delta if abs(delta) <= 1.0 else abs(delta) - 0.5


def authors_value(delta):
    return math.sqrt(huber(delta) + 1e-10)


def authors_update(value, starts, j, delta, *, eta, rho, window):
    """Set the sampled transition's value, keep η of the old one, then decay the value it now holds."""
    value[j] = max(authors_value(delta), eta * value[j])
    for step in range(1, window + 1):
        if j - step < starts[j]:
            return
        value[j - step] = max(value[j] * rho**step, value[j - step])


def authors_settings(eta, rho, window):
    return pser.PSER(
        alpha=1.0, eps=0.0, eta=eta, rho=rho, window=window, decay_from="priority", decay_on_insert=False
    )


@pytest.mark.parametrize(("eta", "rho", "window"), [(0.7, 0.4, 5), (0.5, 0.65, 10), (0.0, 0.8, 20)])
def test_the_authors_preset_decays_the_retained_exponentiated_value(eta, rho, window):
    index = pser.PriorityIndex(120, authors_settings(eta, rho, window), seed=0)
    rng = np.random.default_rng(3)
    value, starts = [], []
    for t in range(120):
        first = t == 0 or rng.random() < 0.08
        index.append([first])
        starts.append(t if first else starts[-1])
        value.append(1.0)
    for _ in range(400):
        j, delta = int(rng.integers(120)), float(rng.normal() * 10 ** rng.uniform(-3, 0.0))
        index.update([j], [authors_value(delta)])
        authors_update(value, starts, j, delta, eta=eta, rho=rho, window=window)
    np.testing.assert_allclose(index.priority(np.arange(120)), value, rtol=1e-12, atol=0)
    probabilities = np.array(value) / math.fsum(value)
    np.testing.assert_allclose(index.probabilities(np.arange(120)), probabilities, rtol=1e-12, atol=0)


def test_the_papers_settings_do_something_else():
    # The two readings differ: otherwise the preset would need no switch.
    settings = pser.PSER(alpha=1.0, eps=0.0, eta=0.7, rho=0.4, window=2, decay_on_insert=False)
    paper = pser.PriorityIndex(3, settings, seed=0)
    authors = pser.PriorityIndex(3, authors_settings(0.7, 0.4, 2), seed=0)
    for index in (paper, authors):
        for t in range(3):
            index.append([t == 0], priority=[10.0 if t == 2 else 0.0])
        index.update([2], [0.1])
    assert paper.priority([2])[0] == authors.priority([2])[0] == 7.0
    assert authors.priority([1])[0] == pytest.approx(2.8)
    assert paper.priority([1])[0] == pytest.approx(0.04)
