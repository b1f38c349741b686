"""How observations are shown, and that what is kept of them comes back."""

import numpy as np
import pytest

import pser
from pser.records.pictures import MOST_PER_EPISODE, kind_of, pack, shown_rows, take_pictures, unpack

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("observation", "kind", "shape"),
    [
        (RNG.normal(size=(5, 4)).astype(np.float32), "vector", (4,)),
        (np.arange(5), "vector", (1,)),
        (RNG.normal(size=(5, 65)), "none", None),
        (RNG.integers(0, 256, (5, 84, 84), np.uint8), "grey", (84, 84)),
        (RNG.integers(0, 256, (5, 4, 84, 84), np.uint8), "grey", (84, 84)),
        (RNG.integers(0, 256, (5, 4, 84, 84, 1), np.uint8), "grey", (84, 84)),
        (RNG.integers(0, 256, (5, 96, 96, 3), np.uint8), "rgb", (96, 96, 3)),
        (RNG.integers(0, 256, (5, 2, 96, 96, 3), np.uint8), "rgb", (96, 96, 3)),
        (RNG.integers(0, 2, (5, 4, 10, 10), np.uint8), "board", (10, 10)),
        (RNG.random((5, 4, 10, 10)) < 0.5, "board", (10, 10)),
        (RNG.normal(size=(5, 4, 10, 10)), "none", None),
        (RNG.integers(0, 256, (5, 300, 300), np.uint8), "none", None),
    ],
)
def test_each_kind_of_observation_is_shown_as_it_can_be(observation, kind, shape):
    assert kind_of(observation) == kind
    if kind != "none":
        rows = shown_rows(observation, kind)
        assert rows.shape == (5, *shape)
        assert unpack(pack(rows), shape, kind).tobytes() == rows.tobytes()


def test_of_a_stack_the_newest_frame_is_shown():
    stack = RNG.integers(0, 256, (3, 4, 6, 6), np.uint8)
    assert (shown_rows(stack, "grey") == stack[:, 3]).all()


def test_of_several_things_in_a_cell_the_last_plane_shows():
    board = np.zeros((1, 3, 2, 2), np.uint8)
    board[0, 0] = 1
    board[0, 2, 1, 1] = 1
    assert shown_rows(board, "board").tolist() == [[[1, 1], [1, 3]]]


def filled(spec, observe, steps):
    memory = pser.ReplayMemory(steps, spec, seed=0)
    for t in range(steps):
        memory.add(observe(t), 0, 0.0, observe(t + 1), False, t == steps - 1)
    return memory


def test_pictures_are_the_observations_of_the_episodes_asked_for():
    memory = filled(pser.Array((3,), np.float32), lambda t: np.float32([t, t * t, -t]), 20)
    pictures = take_pictures(memory, [np.arange(3, 8), np.arange(12, 14)])
    assert (pictures.kind, pictures.shape, pictures.field) == ("vector", (3,), "")
    assert [episode.ids.tolist() for episode in pictures.episodes] == [[3, 4, 5, 6, 7], [12, 13]]
    assert unpack(pictures.episodes[1].data, (3,), "vector").tolist() == [[12, 144, -12], [13, 169, -13]]


def test_of_a_long_episode_every_second_step_is_kept():
    memory = filled(pser.Array((), np.float32), float, MOST_PER_EPISODE + 1)
    (episode,) = take_pictures(memory, [np.arange(MOST_PER_EPISODE + 1)]).episodes
    assert episode.ids.tolist() == list(range(0, MOST_PER_EPISODE + 1, 2))


def test_of_a_dict_the_largest_field_that_can_be_shown_is_taken():
    spec = {
        "sound": pser.Array((500,), np.float32),
        "eye": pser.Array((8, 8), np.uint8),
        "touch": pser.Array((2,), np.float32),
    }
    zero = {"sound": np.zeros(500, np.float32), "touch": np.zeros(2, np.float32)}
    memory = filled(spec, lambda t: {**zero, "eye": np.full((8, 8), t, np.uint8)}, 4)
    pictures = take_pictures(memory, [np.arange(4)])
    assert (pictures.kind, pictures.field) == ("grey", "eye")
    assert unpack(pictures.episodes[0].data, (8, 8), "grey")[:, 0, 0].tolist() == [0, 1, 2, 3]


def test_what_cannot_be_shown_is_not_kept():
    memory = filled(pser.Array((500,), np.float32), lambda t: np.zeros(500, np.float32), 4)
    pictures = take_pictures(memory, [np.arange(4)])
    assert (pictures.kind, pictures.episodes) == ("none", [])
    assert take_pictures(memory, []).kind == "none"
