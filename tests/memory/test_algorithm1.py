"""A batch of one is the paper's Algorithm 1 to the letter, written out here line by line."""

import numpy as np
import pytest

import pser


def algorithm_1(p, j, delta, *, eps, eta, rho, window, episode_start):
    """The priority lines of Algorithm 1, on a plain list."""
    p[j] = max(abs(delta) + eps, eta * p[j])
    for step in range(1, window + 1):
        if j - step < episode_start:
            break
        p[j - step] = max((abs(delta) + eps) * rho**step, p[j - step])


@pytest.mark.parametrize(("rho", "window"), [(0.4, 5), (0.65, 10), (0.8, 20)])
@pytest.mark.parametrize("eta", [0.0, 0.3, 0.5, 0.7])
def test_a_batch_of_one_is_algorithm_1(rho, window, eta):
    eps, size, length = 1e-4, 90, 30
    index = pser.PriorityIndex(size, pser.PSER(eps=eps, eta=eta, rho=rho, window=window), seed=0)
    p = []
    for t in range(size):
        index.append([t % length == 0])
        p.append(max([1.0, *p]))  # "with maximal priority p_t = max_{i<t} p_i", p_1 = 1
    rng = np.random.default_rng(7)
    for _ in range(300):
        j, delta = int(rng.integers(size)), float(rng.normal() * 10 ** rng.uniform(-3, 1))
        index.update([j], [delta])
        algorithm_1(p, j, delta, eps=eps, eta=eta, rho=rho, window=window, episode_start=j - j % length)
        np.testing.assert_allclose(index.priority(np.arange(size)), p, rtol=1e-13, atol=0)


def test_inserting_while_learning_is_algorithm_1():
    eps, eta, rho, window = 1e-4, 0.7, 0.4, 5
    index = pser.PriorityIndex(200, pser.PSER(eps=eps, eta=eta, rho=rho, window=window), seed=0)
    p, starts, largest = [], [], 1.0
    rng = np.random.default_rng(11)
    for t in range(200):
        first = t == 0 or rng.random() < 0.1
        index.append([first])
        starts.append(t if first else starts[-1])
        p.append(largest)
        j, delta = int(rng.integers(t + 1)), float(rng.normal() * 3)
        index.update([j], [delta])
        algorithm_1(p, j, delta, eps=eps, eta=eta, rho=rho, window=window, episode_start=starts[j])
        largest = max(largest, *p)
    np.testing.assert_allclose(index.priority(np.arange(200)), p, rtol=1e-13, atol=0)
    assert index.max_priority == pytest.approx(largest, rel=1e-13)
