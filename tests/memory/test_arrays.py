"""`update_priorities` and `add` accept any array that speaks the usual protocols."""

import subprocess
import sys

import numpy as np
import pytest

import pser
from pser.errors import PserError
from strategies import append_both, index_pair, memory_pair


class OnlyDlpack:
    """An array that can only be exchanged by DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyArray:
    """An array that can only be exchanged by `__array__`, as JAX's does."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


TD = [0.5, -2.0, 0.0, 1.25]
CASES = {
    "list": (list, TD),
    "tuple": (tuple, TD),
    "float64": (lambda v: np.array(v, np.float64), TD),
    "float32": (lambda v: np.array(v, np.float32), TD),
    "float16": (lambda v: np.array(v, np.float16), TD),
    "integers": (lambda v: np.array(v, np.int32), [1, -2, 0, 3]),
    "unsigned": (lambda v: np.array(v, np.uint8), [1, 2, 0, 255]),
    "list of ints": (list, [1, -2, 0, 3]),
    "strided": (lambda v: np.repeat(np.array(v), 3)[::3], TD),
    "backwards": (lambda v: np.array(v[::-1])[::-1], TD),
    "read-only": (lambda v: np.frombuffer(np.array(v, np.float64).tobytes()), TD),
    "dlpack": (lambda v: OnlyDlpack(np.array(v, np.float32)), TD),
    "__array__": (lambda v: OnlyArray(np.array(v, np.float32)), TD),
}


@pytest.mark.parametrize("case", CASES)
def test_td_errors_of_any_kind(case):
    make, values = CASES[case]
    index, model = index_pair(4, eps=0.0, eta=0.0, window=0)
    for _ in range(4):
        append_both(index, model, [True])
    assert index.update(np.arange(4), make(values)) == 4
    assert index.priority(np.arange(4)).tolist() == [abs(float(v)) for v in values]


@pytest.mark.parametrize(
    "make", [list, np.array, lambda v: np.array(v, np.int32), lambda v: np.array(v, np.uint64)]
)
def test_ids_of_any_integer_kind(make):
    index, model = index_pair(4, eps=0.0, eta=0.0, window=0)
    for _ in range(4):
        append_both(index, model, [True])
    assert index.update(make([2, 0]), [3.0, 4.0]) == 2
    assert index.priority(make([2, 0])).tolist() == [3.0, 4.0]


def memory_of_four():
    memory, _ = memory_pair(4, pser.Array((1,), np.float32), eps=0.0, eta=0.0, window=0)
    for t in range(4):
        memory.add(np.float32([t]), 0, 0.0, np.float32([t + 1]), False, False)
    return memory


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_torch_tensors_with_gradients_are_accepted(dtype):
    torch = pytest.importorskip("torch")
    memory = memory_of_four()
    td = torch.tensor(TD, dtype=getattr(torch, dtype), requires_grad=True)
    assert memory.update_priorities(torch.arange(4), td) == 4
    assert memory.priorities(np.arange(4)).tolist() == [0.5, 2.0, 0.0, 1.25]
    assert memory.update_priorities(torch.arange(4), (td * 2).detach()) == 4
    assert memory.update_priorities(np.arange(4), td * 3) == 4  # a result inside the graph
    assert memory.priorities(torch.arange(4)).tolist() == [1.5, 6.0, 0.0, 3.75]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_torch_floats_that_numpy_does_not_know_keep_their_values(dtype):
    torch = pytest.importorskip("torch")
    memory = memory_of_four()
    td = torch.tensor(TD, requires_grad=True).to(getattr(torch, dtype))
    assert memory.update_priorities(torch.arange(4), td) == 4
    assert memory.priorities(np.arange(4)).tolist() == [0.5, 2.0, 0.0, 1.25]
    one = torch.tensor([1.5]).to(getattr(torch, dtype))
    (added,) = memory.add(one, 0, one, one, False, False, td_error=one)
    assert memory.priorities(added) == 1.5
    assert memory[added].reward == memory[added].observation == 1.5
    with pytest.raises(PserError, match="ids must be whole numbers"):
        memory.update_priorities(td, td)


def test_torch_tensors_that_are_bad_are_refused():
    torch = pytest.importorskip("torch")
    memory = memory_of_four()
    with pytest.raises(PserError):
        memory.update_priorities(torch.arange(4), torch.tensor([1.0, float("nan"), 0.0, 0.0]))
    with pytest.raises(PserError):
        memory.update_priorities(torch.arange(4), torch.ones(4, 1))
    assert memory.priorities(np.arange(4)).tolist() == [1.0] * 4


def test_torch_observations_are_accepted():
    torch = pytest.importorskip("torch")
    memory, _ = memory_pair(4, pser.Array((2,), np.float32), num_envs=2)
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    no = torch.zeros(2, dtype=torch.bool)
    memory.add(x, torch.tensor([0, 1]), torch.tensor([0.5, 1.5]), x + 1, no, no)
    batch = memory.sample(4, beta=0.5)
    for row, transition in enumerate(batch.ids.tolist()):
        assert batch.observation[row].tolist() == x[transition].tolist()
        assert batch.next_observation[row].tolist() == (x + 1)[transition].tolist()


def test_jax_arrays_are_accepted():
    jnp = pytest.importorskip("jax.numpy")
    memory = memory_of_four()
    assert memory.update_priorities(jnp.arange(4), jnp.asarray(TD)) == 4
    assert memory.priorities(np.arange(4)).tolist() == [0.5, 2.0, 0.0, 1.25]


WITHOUT_TORCH = """
import sys
import numpy as np, pser
index = pser.PriorityIndex(4, pser.PSER(), seed=0)
index.append(np.array([True]))
index.update(index.sample(2)[0], np.float32([1, 2]))
assert "torch" not in sys.modules and "jax" not in sys.modules
"""


def test_neither_torch_nor_jax_is_ever_imported():
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=True)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64, np.bool_]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_observations_and_actions_of_any_shape_and_dtype_come_back_exactly(dtype, shape):
    memory, _ = memory_pair(9, pser.Array(shape, dtype), pser.Array(shape, dtype), num_envs=2)
    rng = np.random.default_rng(0)

    def draw():
        return (rng.random((2, *shape)) * 200).astype(dtype)

    given = {}
    for t in range(7):
        row = draw(), draw(), draw()
        ids = memory.add(row[0], row[1], [float(t), 0.0], row[2], [False] * 2, [False] * 2)
        for e, i in enumerate(ids.tolist()):
            given[i] = [part[e] for part in row]
    batch = memory.sample(64, beta=0.5)
    assert len(set(batch.ids.tolist())) == 9
    for row, i in enumerate(batch.ids.tolist()):
        for part, wanted in zip(
            (batch.observation, batch.action, batch.next_observation), given[i], strict=True
        ):
            assert part.dtype == dtype
            assert part[row].shape == shape
            assert part[row].tobytes() == wanted.tobytes()


def test_dict_observations_come_back_exactly():
    space = {
        "camera": pser.Array((2, 2), np.uint8),
        "joints": pser.Array((3,), np.float64),
        "clock": pser.Array((), np.int64),
    }
    memory, _ = memory_pair(5, space, pser.Array((2,), np.float32))
    rng = np.random.default_rng(0)

    def draw():
        return {
            "camera": rng.integers(0, 256, (2, 2), dtype=np.uint8),
            "joints": rng.normal(size=3),
            "clock": np.int64(rng.integers(2**60)),
        }

    given = []
    for _ in range(8):
        given.append((draw(), draw()))
        memory.add(given[-1][0], np.float32([1, 2]), 0.0, given[-1][1], False, False)
    batch = memory.sample(40, beta=0.5)
    assert set(batch.ids.tolist()) == {3, 4, 5, 6, 7}
    for row, i in enumerate(batch.ids.tolist()):
        for name in space:
            np.testing.assert_array_equal(batch.observation[name][row], given[i][0][name])
            np.testing.assert_array_equal(batch.next_observation[name][row], given[i][1][name])
            assert batch.observation[name].dtype == space[name].dtype


def test_gymnasium_spaces_are_accepted():
    spaces = pytest.importorskip("gymnasium.spaces")
    memory = pser.ReplayMemory(
        capacity=4, observation=spaces.Box(-1.0, 1.0, (3,), np.float32), action=spaces.Discrete(5), seed=0
    )
    memory.add(np.float32([1, 2, 3]), 4, 0.5, np.float32([2, 3, 4]), False, False)
    batch = memory.sample(2, beta=0.5)
    assert batch.observation.tolist() == [[1, 2, 3]] * 2
    assert batch.action.tolist() == [4, 4]
    both = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float64), "n": spaces.Discrete(3)})
    memory = pser.ReplayMemory(
        capacity=4, observation=both, action=spaces.Box(-1, 1, (2,), np.float32), seed=0
    )
    row = {"x": np.array([0.5, 0.25]), "n": np.int64(2)}
    memory.add(row, np.float32([0.1, 0.2]), 0.5, row, False, False)
    batch = memory.sample(1, beta=0.5)
    assert batch.observation["x"].tolist() == [[0.5, 0.25]]
    assert batch.observation["n"].tolist() == [2]
