"""The kernel's convolution over planes that are mostly zero, against the sum written out in plain Python."""

import numpy as np
import pytest

from pser import _kernel
from pser.errors import PserError


def plain(cells, weight, bias):
    """max(0, b + Σ w·x) for every position and filter."""
    batch, channels, rows, columns = cells.shape
    found = np.zeros((batch, rows - 2, columns - 2, 16))
    for b, y, x, f in np.ndindex(found.shape):
        total = float(bias[f])
        for c, dy, dx in np.ndindex(channels, 3, 3):
            total += float(weight[f, c, dy, dx]) * float(cells[b, c, y + dy, x + dx])
        found[b, y, x, f] = max(0.0, total)
    return found


def plain_gradient(cells, slope):
    """Σ over batch and positions of slope·x for every weight."""
    _, channels, rows, columns = cells.shape
    found = np.zeros((16, channels, 3, 3))
    for f, c, dy, dx in np.ndindex(found.shape):
        found[f, c, dy, dx] = (
            slope[..., f] * cells[:, c, dy : dy + rows - 2, dx : dx + columns - 2].astype(np.float64)
        ).sum()
    return found


@pytest.mark.parametrize("shape", [(2, 3, 10, 10), (1, 1, 3, 3), (3, 2, 5, 4), (0, 2, 10, 10)])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32])
def test_convolution_and_its_gradient_are_the_sums_written_out(shape, dtype):
    rng = np.random.default_rng(0)
    cells = (rng.integers(0, 256, shape) * (rng.random(shape) < 0.3)).astype(dtype)
    weight = rng.normal(size=(16, shape[1], 3, 3)).astype(np.float32)
    bias = rng.normal(size=16).astype(np.float32)
    out = np.full((shape[0], shape[2] - 2, shape[3] - 2, 16), np.nan, np.float32)
    _kernel.convolve(cells, weight, bias, out, *shape[1:])
    np.testing.assert_allclose(out, plain(cells, weight, bias), rtol=1e-5, atol=1e-4)
    slope = rng.normal(size=out.shape).astype(np.float32)
    gradient = np.full(weight.shape, np.nan, np.float32)
    _kernel.convolve_gradient(cells, slope, gradient, *shape[1:])
    np.testing.assert_allclose(gradient, plain_gradient(cells, slope), rtol=1e-5, atol=1e-3)


def test_wrong_sizes_are_refused():
    cells, weight, bias = (
        np.zeros((1, 2, 5, 5), bool),
        np.zeros((16, 18), np.float32),
        np.zeros(16, np.float32),
    )
    out = np.zeros((9, 16), np.float32)
    for wrong in (
        (cells, weight[:, :9].copy(), bias, out, 2, 5, 5),
        (cells, weight, bias[:8].copy(), out, 2, 5, 5),
        (cells, weight, bias, out[:8], 2, 5, 5),
        (cells, weight, bias, out, 3, 5, 5),
        (cells, weight, bias, out, 2, 2, 5),
    ):
        with pytest.raises(PserError):
            _kernel.convolve(*wrong)
    with pytest.raises(PserError):
        _kernel.convolve_gradient(cells, out[:8], weight, 2, 5, 5)
    with pytest.raises(TypeError):
        _kernel.convolve(cells.astype(np.int64), weight, bias, out, 2, 5, 5)
