"""Batches as torch tensors: the same numbers, without a copy, and torch only where asked for."""

import subprocess
import sys

import numpy as np
import pytest

import pser

torch = pytest.importorskip("torch")


def filled(observation, make, count=40, **settings):
    memory = pser.ReplayMemory(100, observation, pser.Array((2,), np.float32), seed=0, **settings)
    for step in range(count):
        memory.add(make(step), [step, -step], float(step), make(step + 1), step % 7 == 6, False)
    return memory


def plain(**settings):
    return filled(pser.Array((3,), np.float32), lambda step: np.full(3, step, np.float32), **settings)


def test_tensors_share_the_arrays_of_the_batch():
    memory = plain()
    batch = memory.sample(16)
    tensors = batch.torch()
    for name in batch._fields:
        array, tensor = getattr(batch, name), getattr(tensors, name)
        if name == "ids":
            assert tensor is array
        else:
            assert tensor.data_ptr() == array.ctypes.data
            np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensors.observation.dtype == torch.float32
    assert tensors.terminated.dtype == torch.bool


def test_the_same_tensors_show_the_next_batch_of_the_same_size():
    memory = plain()
    first = memory.sample(16).torch()
    again = memory.sample(16)
    assert again.torch() is first
    np.testing.assert_array_equal(first.reward.numpy(), again.reward)
    kept = memory.sample(16, copy=True)
    assert kept.torch() is not first
    assert kept.torch().reward.data_ptr() == kept.reward.ctypes.data


def test_sample_can_give_tensors_at_once():
    one, other = plain(), plain()
    batch, tensors = one.sample(16, 0.7, out="numpy"), other.sample(16, 0.7, out="torch")
    for array, tensor in zip(batch, tensors, strict=True):
        np.testing.assert_array_equal(array, np.asarray(tensor))
    one.update_priorities(batch.ids, batch.reward)
    other.update_priorities(tensors.ids, tensors.reward)
    np.testing.assert_array_equal(one.sample(16).ids, other.sample(16, out="torch").ids)


def test_dicts_and_frame_stacks_become_tensors():
    fields = {"screen": pser.Frames((4, 4), stack=2), "number": pser.Array((), np.int16)}

    def make(step):
        return {
            "screen": np.stack([np.full((4, 4), k, np.uint8) for k in (step, step + 1)]),
            "number": np.int16(step),
        }

    batch = filled(fields, make).sample(8)
    tensors = batch.torch()
    for side in ("observation", "next_observation"):
        for name in fields:
            array, tensor = getattr(batch, side)[name], getattr(tensors, side)[name]
            assert tensor.data_ptr() == array.ctypes.data
            np.testing.assert_array_equal(tensor.numpy(), array)


def test_to_moves_every_tensor_and_casts_what_is_a_floating_point_number():
    batch = plain().sample(16)
    moved = batch.to("meta")
    assert {tensor.device.type for name, tensor in moved._asdict().items() if name != "ids"} == {"meta"}
    assert batch.torch("meta").reward.device.type == "meta"
    halved = batch.to(dtype=torch.float16)
    assert halved.observation.dtype == halved.weights.dtype == torch.float16
    assert halved.terminated.dtype == torch.bool
    np.testing.assert_array_equal(halved.reward.numpy(), batch.reward)
    assert batch.to("cpu").reward.data_ptr() == batch.reward.ctypes.data


def test_a_dtype_that_torch_does_not_know_is_named():
    memory = filled(pser.Array((), np.longdouble), lambda step: np.longdouble(step))
    with pytest.raises(pser.PserError, match="torch must know the dtype of a field"):
        memory.sample(4).torch()


def test_another_kind_of_output_is_refused():
    memory = plain()
    with pytest.raises(pser.PserError, match="out must be 'numpy' or 'torch', got 'jax'"):
        memory.sample(4, out="jax")


def test_torch_is_not_imported_unless_asked_for():
    code = """
import sys
import numpy as np
import pser
memory = pser.ReplayMemory(4, pser.Array((), np.float32), seed=0)
memory.add(0.0, 0, 0.0, 0.0, False, False)
batch = memory.sample(2)
assert "torch" not in sys.modules
batch.torch()
assert "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
