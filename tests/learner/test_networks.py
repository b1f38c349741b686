"""Shapes, parameter counts and meaning of the networks."""

import pytest
import torch

from pser.errors import PserError
from pser.learner.networks import Streams, build_network

torch.set_num_threads(1)


def build(kind, shape, actions=6, *, dueling=False, hidden=(8, 4)):
    torch.manual_seed(0)
    return build_network(kind, shape, Streams((1, actions) if dueling else (actions,)), hidden=hidden)


def count(network):
    return sum(p.numel() for p in network.parameters())


def test_nature_network_has_the_published_size():
    # Mnih et al. 2015 with 6 actions: 8224 + 32832 + 36928 + 1606144 + 3078.
    assert count(build("nature", (4, 84, 84))) == 1_687_206


def test_minatar_network_has_the_published_size():
    # Young and Tian 2019 on 4 channels with 6 actions: 592 + 131200 + 774.
    assert count(build("minatar", (4, 10, 10))) == 132_566


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("nature", (4, 84, 84)), ("der", (4, 84, 84)), ("minatar", (4, 10, 10)), ("mlp", (3, 2))],
)
def test_the_outputs_of_all_streams_stand_side_by_side(kind, shape, dueling):
    observation = torch.randint(0, 2, (5, *shape), dtype=torch.uint8)
    assert build(kind, shape, dueling=dueling)(observation).shape == (5, 7 if dueling else 6)


def test_frames_are_divided_by_255():
    network = build("nature", (4, 84, 84))
    frames = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    x = frames.float() / 255
    for conv in network.body[::2]:
        x = torch.relu(conv(x))
    hidden, _, last = network.heads[0]
    expected = last(torch.relu(hidden(x.flatten(1))))
    torch.testing.assert_close(network(frames), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "shape"), [("nature", (4, 84, 84)), ("minatar", (4, 10, 10)), ("mlp", (5,))]
)
def test_observations_of_floats_are_left_as_they_were(kind, shape):
    observation = torch.full((2, *shape), 200.0)
    build(kind, shape)(observation)
    assert (observation == 200).all()


def test_patches_make_a_linear_layer_a_convolution():
    network = build("minatar", (4, 10, 10))
    planes = torch.randint(0, 2, (3, 4, 10, 10), dtype=torch.uint8)
    layer = network.body
    rows = layer(planes).view(3, 8, 8, 16)
    expected = torch.relu(
        torch.nn.functional.conv2d(planes.float(), layer.weight.view(16, 4, 3, 3), layer.bias)
    )
    torch.testing.assert_close(rows.permute(0, 3, 1, 2), expected)


def test_one_hidden_layer_is_enough():
    assert build("mlp", (3,), hidden=(7,))(torch.randn(2, 3)).shape == (2, 6)


def test_a_network_beyond_the_computers_memory_is_refused_before_it_is_made():
    with pytest.raises(PserError, match="lower --hidden") as caught:
        build("mlp", (4,), hidden=(1_000_000_000, 1_000_000_000))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["nature", "minatar", "der"])
def test_wrong_screens_are_refused(kind):
    with pytest.raises(PserError, match="choose --network mlp"):
        build(kind, (4, 20, 20))
