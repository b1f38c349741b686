"""Steps of the usual form go straight to the kernel; whatever form a step has, the memory becomes the same."""

import numpy as np
import pytest

import pser
from pser.errors import PserError

from .dumps import dump_memory

ONE = {
    "observation": np.float32([0.5, -1.5]),
    "action": 3,
    "reward": 0.25,
    "next_observation": np.float32([2.5, 0.0]),
    "terminated": False,
    "truncated": False,
}
ROWS = {
    "observation": np.float32([[0.5, -1.5], [1, 2]]),
    "action": np.array([3, 4]),
    "reward": np.array([0.25, 1.0]),
    "next_observation": np.float32([[2.5, 0.0], [3, 4]]),
    "terminated": np.array([False, False]),
    "truncated": np.array([False, False]),
}


def made(num_envs=1, **settings):
    return pser.ReplayMemory(10, pser.Array((2,), np.float32), num_envs=num_envs, seed=0, **settings)


def goes_straight(memory, **step):
    """Whether the kernel takes the step as it is; the memory has it then."""
    values = {"priority": None, "td_error": None, "stream": None, **step}
    return memory._intake.add(**values, ends_too=True) is not None


STRAIGHT = {
    "numbers": {},
    "a row axis": {name: np.array([value]) for name, value in ONE.items()},
    "numpy numbers": {
        "action": np.int64(3),
        "reward": np.float64(0.25),
        "terminated": np.bool_(False),
        "truncated": np.bool_(False),
    },
    "single precision": {"reward": np.float32(0.25)},
    "an array of single precision": {"reward": np.float32([0.25])},
    "a whole reward": {"reward": 2},
    "an end": {"terminated": True},
    "a cut": {"truncated": np.bool_(True)},
    "a priority": {"priority": 0.5},
    "a TD error": {"td_error": np.float32(-0.5)},
    "a named stream": {"stream": np.array([0])},
}


def listed(value):
    """The same value in a form that must be converted."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else [value]


@pytest.mark.parametrize("case", STRAIGHT)
def test_a_step_of_the_usual_form_goes_straight_and_is_the_same_as_a_converted_one(case):
    step = ONE | STRAIGHT[case]
    straight, added, converted = made(), made(), made()
    assert goes_straight(straight, **step)
    ids = added.add(**step)
    flat = {name: [value] if name == "stream" else listed(value) for name, value in step.items()}
    flat |= {name: np.asarray(flat[name], np.float32) for name in ("observation", "next_observation")}
    flat["observation"] = np.repeat(flat["observation"].reshape(2), 2)[::2]  # not contiguous
    assert not goes_straight(made(), **flat)
    assert converted.add(**flat).tolist() == ids.tolist()
    assert dump_memory(added) == dump_memory(converted) == dump_memory(straight)


@pytest.mark.parametrize("extra", [{}, {"priority": np.array([0.5, 2.0])}, {"td_error": np.float32([-1, 2])}])
def test_rows_of_several_environments_go_straight(extra):
    step = ROWS | extra
    straight, added, converted = made(2), made(2), made(2)
    assert goes_straight(straight, **step)
    added.add(**step)
    flat = {name: listed(value) for name, value in step.items()}
    flat |= {name: step[name] for name in ("observation", "next_observation")}
    converted.add(**flat)
    assert dump_memory(added) == dump_memory(converted) == dump_memory(straight)


def test_named_streams_and_float32_rewards_of_several_environments_go_straight():
    step = {name: value[::-1].copy() for name, value in ROWS.items()}
    straight, converted = made(2), made(2)
    assert goes_straight(straight, **step | {"reward": np.float32([1, 0.25]), "stream": np.array([1, 0])})
    converted.add(**step, stream=[1, 0])
    assert dump_memory(straight) == dump_memory(converted)


def test_dicts_go_straight():
    spec = {"speed": pser.Array((2,), np.float32), "n": pser.Array((), np.int64)}
    straight, added = (pser.ReplayMemory(10, spec, seed=0) for _ in range(2))
    seen = {"n": np.int64(7), "speed": np.float32([1, 2])}
    step = ONE | {"observation": seen, "next_observation": {"speed": np.float32([3, 4]), "n": np.int64(8)}}
    assert goes_straight(straight, **step)
    added.add(**step)
    assert dump_memory(added) == dump_memory(straight)
    for wrong in ({"n": np.int64(7)}, seen | {"more": 1}, {"n": np.int64(7), "fast": seen["speed"]}):
        assert not goes_straight(straight, **step | {"observation": wrong})
    assert dump_memory(added) == dump_memory(straight)


NOT_STRAIGHT = {
    "wider numbers": {"observation": np.zeros(2)},
    "another shape": {"observation": np.zeros((1, 3), np.float32)},
    "two rows": {"observation": np.zeros((2, 2), np.float32)},
    "bytes": {"observation": b"12345678"},
    "nothing": {"observation": None},
    "a huge action": {"action": 2**63},
    "a true action": {"action": True},
    "a fractional action": {"action": 0.5},
    "a huge reward": {"reward": 10**400},
    "an infinite reward": {"reward": float("inf")},
    "a true reward": {"reward": True},
    "two rewards": {"reward": np.zeros(2)},
    "a flag that is a number": {"terminated": 0},
    "a flag of bytes": {"truncated": np.uint8(1)},
    "a negative priority": {"priority": -1.0},
    "a TD error that is no number": {"td_error": float("nan")},
    "both": {"priority": 1.0, "td_error": 1.0},
    "a stream that is not there": {"stream": np.array([1])},
    "no streams": {"stream": np.array([], np.int64)},
    "streams that are no whole numbers": {"stream": np.array([0.0])},
}


CONVERTED = {"a true action", "no streams"}


@pytest.mark.parametrize("case", NOT_STRAIGHT)
def test_what_needs_a_look_is_left_to_python_with_nothing_changed(case):
    memory = made()
    memory.add(**ONE)
    before = dump_memory(memory)
    assert not goes_straight(memory, **ONE | NOT_STRAIGHT[case])
    assert dump_memory(memory) == before


@pytest.mark.parametrize("case", sorted(set(NOT_STRAIGHT) - CONVERTED))
def test_what_cannot_be_converted_is_refused_with_nothing_changed(case):
    memory = made()
    memory.add(**ONE)
    before = dump_memory(memory)
    with pytest.raises(PserError):
        memory.add(**ONE | NOT_STRAIGHT[case])
    assert dump_memory(memory) == before


def test_the_watch_for_stored_resets_sees_the_steps_that_it_needs():
    """Between episodes steps go straight; those that end one, and those after, do not pass the watch by."""
    memory = made(2)
    zeros = np.zeros((2, 2), np.float32)
    final = np.ones((2, 2), np.float32)
    none, both = np.zeros(2, bool), np.ones(2, bool)
    action, reward = np.zeros(2, np.int64), np.zeros(2)

    def play():
        for _ in range(2):
            memory.add(zeros, action, reward, final, none, none)
            memory.add(final, action, reward + 1, final, both, none)
            memory.add(final, action, reward, zeros, none, none)  # the reset, as if it were a step

    with pytest.warns(UserWarning, match="resets seem to be stored as steps"):
        play()
