"""MinAtar's convolution as a layer: by the kernel and over patches it is PyTorch's, forward and backward."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pser.errors import PserError
from pser.learner.planes import SparseConvolution

torch.set_num_threads(1)


def made(channels, seed=0):
    torch.manual_seed(seed)
    return SparseConvolution(channels), torch.Generator().manual_seed(seed)


def by_torch(layer, planes):
    """The same by PyTorch's convolution, its filters laid side by side for each position."""
    weight = layer.weight.view(16, -1, 3, 3)
    return torch.relu(functional.conv2d(planes.float(), weight, layer.bias)).permute(0, 2, 3, 1).flatten(1)


def gradients(outputs, inputs, slope):
    return torch.autograd.grad(outputs, inputs, slope)


@given(
    channels=st.integers(1, 10),
    batch=st.integers(1, 5),
    dtype=st.sampled_from([torch.bool, torch.uint8, torch.float32, torch.int64]),
    density=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_it_is_pytorchs_convolution_and_relu(channels, batch, dtype, density, seed):
    layer, generator = made(channels, seed)
    filled = torch.rand(batch, channels, 10, 10, generator=generator) < density
    planes = (filled * torch.randint(0, 3, filled.shape, generator=generator)).to(dtype)
    slope = torch.randn(batch, 1024, generator=generator)
    expected, outputs = by_torch(layer, planes), layer(planes)
    torch.testing.assert_close(outputs, expected, rtol=1e-4, atol=1e-5)
    # A sum that is zero but for rounding may stand on either side of the ReLU.
    slope[(outputs == 0) != (expected == 0)] = 0
    parameters = [layer.weight, layer.bias]
    for found, wanted in zip(
        gradients(outputs, parameters, slope), gradients(expected, parameters, slope), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    with torch.inference_mode():
        assert torch.equal(layer(planes), outputs)


def test_planes_that_ask_for_a_gradient_get_it():
    layer, generator = made(3)
    planes = torch.rand(2, 3, 10, 10, generator=generator).requires_grad_()
    slope = torch.randn(2, 1024, generator=generator)
    asked = [planes, layer.weight, layer.bias]
    found, wanted = (gradients(way(planes), asked, slope) for way in (layer, lambda x: by_torch(layer, x)))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_what_the_kernel_cannot_read_goes_over_patches():
    layer, generator = made(2)
    planes = torch.rand(2, 2, 10, 10, generator=generator)
    expected = layer(planes)
    with torch.no_grad():
        layer.weight.set_(layer.weight.t().contiguous().t())
    torch.testing.assert_close(layer(planes), expected)
    torch.testing.assert_close(layer(planes.transpose(2, 3).contiguous().transpose(2, 3)), expected)


def test_gradients_laid_out_in_another_way_are_read_right():
    layer, generator = made(2)
    planes = torch.rand(3, 2, 10, 10, generator=generator)
    slope = torch.randn(1024, 3, generator=generator)
    one, other = (gradients(layer(planes), layer.weight, g)[0] for g in (slope.t(), slope.t().contiguous()))
    assert torch.equal(one, other)


def test_a_second_derivative_is_refused_instead_of_wrong():
    layer, _ = made(2)
    outputs = layer(torch.ones(1, 2, 10, 10))
    with pytest.raises(PserError, match="first derivative only"):
        torch.autograd.grad(outputs.sum(), layer.weight, create_graph=True)
