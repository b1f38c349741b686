"""SEMANTICS: numbers that do not fit are never wrapped, never turned into inf: refused, nothing changed."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pser
from pser.errors import PserError

from .dumps import dump_memory

FLOAT32_MAX = float(np.finfo(np.float32).max)


def memory_of(action="int8", observation="float32", **rest):
    return pser.ReplayMemory(
        20, pser.Array((2,), observation), pser.Array((), action), seed=0, **{"num_envs": 1, **rest}
    )


def refused(memory, *args, match, **kwargs):
    before = dump_memory(memory)
    with pytest.raises(PserError, match=match):
        memory.add(*args, **kwargs)
    assert dump_memory(memory) == before


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 200),
        ("int8", -129),
        ("uint8", -1),
        ("int16", 40000),
        ("int32", 2**31),
        ("int64", 2**63),
        ("uint64", -1),
        ("bool", 2),
        ("float16", 70000),
        ("float16", 1e5),
        ("float32", 1e300),
        ("float32", -1e39),
        ("complex64", 1e300 + 0j),
    ],
)
def test_a_plain_number_that_does_not_fit_its_dtype_is_refused(dtype, value):
    refused(memory_of(action=dtype), [0, 0], value, 0.0, [0, 0], False, False, match=f"must (fit|be) {dtype}")
    refused(
        memory_of(observation=dtype), [value, 0], 0, 0.0, [0, 0], False, False, match=f"must (fit|be) {dtype}"
    )
    refused(
        memory_of(observation=dtype), [0, 0], 0, 0.0, [0, value], False, False, match=f"must (fit|be) {dtype}"
    )


def test_one_row_that_does_not_fit_refuses_the_whole_step():
    memory = memory_of(action="int16", num_envs=2)
    zeros, no = np.zeros((2, 2), np.float32), [False, False]
    refused(memory, zeros, [40000, -40000], [0.0, 0.0], zeros, no, no, match="must fit int16")
    refused(memory, zeros, [1, 2], [0.0, 1e39], zeros, no, no, match="row 1 with reward 1e\\+39")
    assert memory.add(zeros, [32767, -32768], [0.0, 0.0], zeros, no, no).tolist() == [0, 1]


@given(
    value=st.integers(-(2**70), 2**70),
    dtype=st.sampled_from(["int8", "uint8", "int16", "uint32", "int64", "uint64"]),
)
def test_a_plain_integer_comes_back_as_it_was_or_is_refused(value, dtype):
    memory = memory_of(action=dtype)
    limits = np.iinfo(dtype)
    if limits.min <= value <= limits.max:
        memory.add([0, 0], value, 0.0, [0, 0], False, False)
        assert int(memory.sample(1).action[0]) == value
    else:
        with pytest.raises(PserError):
            memory.add([0, 0], value, 0.0, [0, 0], False, False)
        assert len(memory) == 0


def test_infinity_that_was_given_comes_back():
    memory = memory_of()
    memory.add([math.inf, -math.inf], 0, 0.0, [math.nan, 0.0], False, False)
    batch = memory.sample(1)
    assert batch.observation.tolist() == [[math.inf, -math.inf]]
    assert np.isnan(batch.next_observation[0, 0])


@pytest.mark.parametrize("reward", [1e39, -1e39, 3.5e38, 1e308])
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_reward_beyond_float32_is_refused_by_a_float32_memory(reward, n_step):
    refused(memory_of(n_step=n_step), [0, 0], 0, reward, [0, 0], False, False, match="float64")
    wide = memory_of(n_step=n_step, reward_dtype=np.float64)
    wide.add([0, 0], 0, reward, [0, 0], True, False)
    assert wide.sample(1).reward.tolist() == [reward]


def test_a_long_double_beyond_float64_is_refused():
    memory = memory_of(reward_dtype=np.float64)
    refused(memory, [0, 0], 0, np.longdouble("1e4000"), [0, 0], False, False, match="finite")


def test_a_sum_beyond_float64_is_refused():
    memory = memory_of(n_step=3, gamma=1.0, reward_dtype=np.float64)
    memory.add([0, 0], 0, 1.7e308, [0, 0], False, False)
    refused(memory, [0, 0], 0, 1.7e308, [0, 0], False, False, match="adds up to more")
    memory.end_episodes()
    assert memory.sample(1).reward.tolist() == [1.7e308]


def test_two_rows_of_one_stream_in_one_call_are_summed_before_they_are_taken():
    memory = memory_of(n_step=3, gamma=1.0)
    rows = (np.zeros((2, 2), np.float32), [0, 0], [3e38, 3e38], np.zeros((2, 2), np.float32))
    no = [False, False]
    refused(memory, *rows, no, no, stream=[0, 0], match="row 1 with reward 3e\\+38")
    assert memory.add(*rows, [True, False], no, stream=[0, 0]).tolist() == [0]  # the first ends an episode


rewards = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(0.2, 1.1).map(lambda x: x * FLOAT32_MAX),
    st.floats(-1.1, 0).map(lambda x: x * FLOAT32_MAX),
)


@given(
    n_step=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.5, 1.0]),
    steps=st.lists(st.tuples(rewards, st.booleans()), max_size=25),
)
def test_a_step_is_refused_exactly_if_a_return_it_completes_or_may_complete_does_not_fit(
    n_step, gamma, steps
):
    memory = memory_of(n_step=n_step, gamma=gamma)
    pending: list[float] = []
    for reward, ends in steps:
        candidate = [*pending, reward]
        with np.errstate(over="ignore"):
            sums = [
                np.float32(sum(gamma**k * r for k, r in enumerate(candidate[start:])))
                for start in range(len(candidate))
            ]
        assume(
            all(abs(abs(float(total)) - FLOAT32_MAX) > 1e30 for total in sums)
        )  # one rounding would decide
        if all(np.isfinite(total) for total in sums):
            memory.add([0, 0], 0, reward, [0, 0], ends, False)
            pending = [] if ends else candidate[-(n_step - 1) :] if n_step > 1 else []
        else:
            refused(memory, [0, 0], 0, reward, [0, 0], ends, False, match="must fit")
    memory.end_episodes()
    if len(memory):
        assert np.isfinite(memory.sample(64).reward).all()
