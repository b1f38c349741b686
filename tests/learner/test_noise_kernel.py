"""The kernel's noise against the outer product written out."""

import numpy as np
import pytest

from pser import _kernel
from pser.errors import PserError


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 1), (16, 33)])
def test_noise_is_the_outer_product_of_its_two_vectors(rows, columns):
    rng = np.random.default_rng(0)
    mean, sigma, gradient = rng.normal(size=(3, rows, columns)).astype(np.float32)
    out, inputs = rng.normal(size=rows).astype(np.float32), rng.normal(size=columns).astype(np.float32)
    mixed, to_sigma = np.full((2, rows, columns), np.nan, np.float32)
    _kernel.mix_noise(mean, sigma, out, inputs, mixed)
    _kernel.noise_gradient(gradient, out, inputs, to_sigma)
    epsilon = out.astype(np.float64)[:, None] * inputs
    np.testing.assert_allclose(mixed, mean + sigma * epsilon, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_sigma, gradient * epsilon, rtol=1e-5, atol=1e-6)


def test_wrong_sizes_are_refused():
    four, two = np.zeros((2, 2), np.float32), np.zeros(2, np.float32)
    with pytest.raises(PserError, match="layer's shape"):
        _kernel.mix_noise(four, four[:1].copy(), two, two, four.copy())
    with pytest.raises(PserError, match="layer's shape"):
        _kernel.noise_gradient(four, two, two, two.copy())
