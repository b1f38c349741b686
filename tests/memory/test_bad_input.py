"""SEMANTICS: bad input is a clear error (rule, value, remedy) and changes nothing: all or nothing."""

import numpy as np
import pytest

import pser
from pser.errors import PserError
from pser.memory import storage
from strategies import index_pair, memory_pair

from .dumps import dump_index, dump_memory
from .games import FrameGame

NAN, INF = float("nan"), float("inf")


def refused(call, *args, match=None, **kwargs):
    """The call raises PserError with one helpful line: a rule, and after a colon what to do."""
    with pytest.raises(PserError, match=match) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) > 20
    assert ":" in message


# ---------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "setting",
    [
        {"alpha": -0.1},
        {"alpha": 1.1},
        {"alpha": NAN},
        {"alpha": "0.5"},
        {"alpha": None},
        {"eps": -1e-9},
        {"eps": NAN},
        {"eps": INF},
        {"eta": -0.1},
        {"eta": 1.01},
        {"eta": NAN},
        {"rho": -0.1},
        {"rho": 1.0},
        {"rho": 1.5},
        {"rho": NAN},
        {"window": -1},
        {"window": 2.5},
        {"window": "5"},
        {"window": NAN},
        {"decay": "sum"},
        {"decay": None},
        {"decay_from": "delta"},
        {"retain": "some"},
        {"retain": None},
        {"weights": "all"},
    ],
    ids=str,
)
def test_a_setting_of_pser_out_of_range_is_refused(setting):
    refused(pser.PSER, **setting, match=next(iter(setting)))


@pytest.mark.parametrize(
    "setting",
    [{"alpha": 1.1}, {"alpha": NAN}, {"eps": -1.0}, {"variant": "ranked"}, {"weights": "none"}],
    ids=str,
)
def test_a_setting_of_per_out_of_range_is_refused(setting):
    refused(pser.PER, **setting, match=next(iter(setting)))


@pytest.mark.parametrize(
    "setting",
    [
        {"floor": 0.0},
        {"floor": -1.0},
        {"floor": NAN},
        {"floor": 0.1, "limit": 0},
        {"floor": 0.1, "limit": 2.5},
    ],
)
def test_a_setting_of_the_adaptive_window_out_of_range_is_refused(setting):
    refused(pser.AdaptiveWindow, **setting)


@pytest.mark.parametrize("capacity", [0, -1, 2.5, NAN, "10", None])
def test_a_bad_capacity_is_refused(capacity):
    refused(pser.PriorityIndex, capacity, pser.PSER(), match="capacity")
    refused(
        pser.ReplayMemory,
        capacity=capacity,
        observation=pser.Array((1,), np.float32),
        action=pser.Array((), np.int64),
        match="capacity",
    )


@pytest.mark.parametrize("streams", [0, -3, 1.5])
def test_a_bad_number_of_streams_is_refused(streams):
    refused(pser.PriorityIndex, 10, pser.PSER(), num_streams=streams, match="num_streams")


def test_a_prioritization_that_is_none_is_refused():
    refused(pser.PriorityIndex, 10, "pser", match="prioritization")
    refused(pser.PriorityIndex, 10, pser.PSER, match="prioritization")  # the class, not an instance


@pytest.mark.parametrize(
    "setting",
    [
        {"num_envs": 0},
        {"n_step": 0},
        {"n_step": -1},
        {"n_step": 1.5},
        {"gamma": -0.1},
        {"gamma": 1.1},
        {"gamma": NAN},
        {"prioritization": "uniform"},
    ],
    ids=str,
)
def test_a_setting_of_the_memory_out_of_range_is_refused(setting):
    usual = {"capacity": 10, "observation": pser.Array((1,), np.float32), "action": pser.Array((), np.int64)}
    refused(pser.ReplayMemory, **{**usual, **setting}, match=next(iter(setting)))


@pytest.mark.parametrize(
    "build",
    [
        lambda: pser.Array((2, -1)),
        lambda: pser.Array((0,)),
        lambda: pser.Array("ab"),
        lambda: pser.Array((2,), object),
        lambda: pser.Array((2,), "no dtype"),
        lambda: pser.Array((2,), "U5"),
        lambda: pser.Frames((2, 2), stack=0),
        lambda: pser.Frames((2, 2), stack=2.5),
        lambda: pser.Anneal(start=0.4, end=1.0, steps=0),
    ],
)
def test_a_bad_description_is_refused(build):
    refused(build)


# ------------------------------------------------------------------------------------------- index


def index_of_three(**rules):
    index, _ = index_pair(4, num_streams=2, **rules)
    index.append([True, True], priority=[0.5, 2.0])
    index.append([False], stream=[1])
    return index


BAD_UPDATES = {
    "NaN": ([0, 1], [1.0, NAN]),
    "inf": ([0, 1], [INF, 1.0]),
    "minus inf": ([0, 1], [1.0, -INF]),
    "diverged": ([0, 1], [1.0, 1e101]),
    "diverged downwards": ([0, 1], [-1e300, 1.0]),
    "unknown id": ([0, 3], [1.0, 1.0]),
    "negative id": ([-1, 0], [1.0, 1.0]),
    "fewer TD errors": ([0, 1], [1.0]),
    "more TD errors": ([0], [1.0, 2.0]),
    "two axes of TD errors": ([0, 1], [[1.0], [2.0]]),
    "two axes of ids": ([[0], [1]], [1.0, 2.0]),
    "scalar TD error for two": ([0, 1], 1.0),
    "float ids": ([0.0, 1.0], [1.0, 1.0]),
    "fractional ids": (np.array([0.5, 1.0]), [1.0, 1.0]),
    "bool ids": (np.array([True, False]), [1.0, 1.0]),
    "text": ([0, 1], ["a", "b"]),
    "text of numbers": ([0, 1], ["1.0", "2.0"]),
    "complex": ([0, 1], [1j, 1.0]),
    "None": ([0, 1], None),
    "None ids": (None, [1.0]),
    "ragged": ([0, 1], [[1.0], [1.0, 2.0]]),
    "objects": ([0, 1], [object(), object()]),
    "too large unsigned id": (np.array([0, 2**63], np.uint64), [1.0, 1.0]),
}


@pytest.mark.parametrize("case", BAD_UPDATES)
@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
def test_a_bad_update_is_refused_and_changes_nothing(case, kind):
    index = index_of_three(kind=kind)
    before = dump_index(index)
    refused(index.update, *BAD_UPDATES[case])
    assert dump_index(index) == before
    index.check_invariants()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_bad_row_of_a_long_batch_is_found(dtype):
    index, _ = index_pair(100)
    index.append(np.arange(100) == 0, stream=np.zeros(100, np.int64))
    before = dump_index(index)
    for bad in (NAN, INF):
        td_errors = np.ones(100, dtype)
        td_errors[-1] = bad
        refused(index.update, np.arange(100), td_errors)
    refused(index.update, np.append(np.arange(99), 100), np.ones(100, dtype), match="100")
    assert dump_index(index) == before


def test_a_bad_td_error_is_refused_even_for_an_overwritten_id():
    index, _ = index_pair(1)
    index.append([True])
    index.append([True])
    before = dump_index(index)
    refused(index.update, [0], [NAN])
    assert dump_index(index) == before


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_the_largest_td_error_that_is_not_divergence_is_accepted(alpha):
    index = index_of_three(alpha=alpha)
    assert index.update([2], [-1e100]) == 1
    assert index.max_priority == pytest.approx(1e100)
    index.check_invariants()
    assert set(index.sample(64)[0].tolist()) == {1, 2}  # itself, and its predecessor by decay
    assert all(np.isfinite(value) for value in index.stats().values())


BAD_APPENDS = {
    "negative priority": {"first": [False, False], "priority": [1.0, -1e-9]},
    "NaN priority": {"first": [False, False], "priority": [NAN, 1.0]},
    "infinite priority": {"first": [False, False], "priority": [1.0, INF]},
    "diverged priority": {"first": [False, False], "priority": [1.0, 1e101]},
    "NaN TD error": {"first": [False, False], "td_error": [NAN, 1.0]},
    "infinite TD error": {"first": [False, False], "td_error": [1.0, -INF]},
    "diverged TD error": {"first": [False, False], "td_error": [1.0, -1e101]},
    "both priority and TD error": {"first": [False, False], "priority": [1.0, 1.0], "td_error": [1.0, 1.0]},
    "too few priorities": {"first": [False, False], "priority": [1.0]},
    "too many priorities": {"first": [False, False], "priority": [1.0, 1.0, 1.0]},
    "too few rows": {"first": [False]},
    "too many rows": {"first": [False, False, False]},
    "no rows": {"first": []},
    "stream out of range": {"first": [False, False], "stream": [0, 2]},
    "negative stream": {"first": [False, False], "stream": [0, -1]},
    "fractional stream": {"first": [False, False], "stream": [0.5, 1.0]},
    "too few streams": {"first": [False, False], "stream": [0]},
    "two axes": {"first": [[False, False]]},
    "first is not bool": {"first": [0.5, 1.0]},
    "first is text": {"first": ["yes", "no"]},
    "priority is text": {"first": [False, False], "priority": ["a", "b"]},
}


@pytest.mark.parametrize("case", BAD_APPENDS)
@pytest.mark.parametrize("kind", ["pser", "uniform"])
def test_a_bad_append_is_refused_and_changes_nothing(case, kind):
    index = index_of_three(kind=kind)
    before = dump_index(index)
    refused(index.append, **BAD_APPENDS[case])
    assert dump_index(index) == before
    index.check_invariants()


BAD_SAMPLES = {
    "zero": {"batch_size": 0},
    "negative": {"batch_size": -1},
    "fractional": {"batch_size": 2.5},
    "text": {"batch_size": "32"},
    "negative beta": {"batch_size": 4, "beta": -0.5},
    "NaN beta": {"batch_size": 4, "beta": NAN},
    "infinite beta": {"batch_size": 4, "beta": INF},
    "text beta": {"batch_size": 4, "beta": "half"},
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
@pytest.mark.parametrize("kind", ["pser", "rank", "uniform"])
def test_a_bad_sample_is_refused_and_moves_not_even_the_random_generator(case, kind):
    index = index_of_three(kind=kind)
    before = dump_index(index)
    refused(index.sample, **BAD_SAMPLES[case])
    assert dump_index(index) == before


@pytest.mark.parametrize("kind", ["pser", "per", "rank", "uniform"])
def test_sampling_an_empty_index_is_refused_and_moves_not_even_the_random_generator(kind):
    index, _ = index_pair(4, kind=kind)
    before = dump_index(index)
    refused(index.sample, 4, match="empty|sample")
    assert dump_index(index) == before


@pytest.mark.parametrize("ids", [[3], [-1], [0.5], ["a"], [0, 10**12], None], ids=str)
def test_reading_the_priority_of_a_bad_id_is_refused(ids):
    index = index_of_three()
    refused(index.priority, ids)
    refused(index.probabilities, ids)


@pytest.mark.parametrize("seed", [-1, "a", 1.5, [-1]], ids=str)
def test_a_bad_seed_is_refused(seed):
    refused(pser.PriorityIndex, 4, pser.PSER(), seed=seed)
    refused(pser.ReplayMemory, 4, pser.Array((2,)), seed=seed)
    refused(pser.PriorityIndex(4, pser.PSER()).reseed, seed)


def test_a_generator_that_could_not_be_saved_is_refused_at_once():
    other = np.random.Generator(np.random.MT19937(0))
    refused(pser.PriorityIndex, 4, pser.PSER(), seed=other)
    refused(pser.PriorityIndex(4, pser.PSER()).reseed, other)


@pytest.mark.parametrize("streams", [2**60, 2**20 + 1, 10**400])
def test_more_streams_than_memory_could_hold_are_refused(streams):
    refused(pser.PriorityIndex, 4, pser.PSER(), num_streams=streams)
    refused(pser.ReplayMemory, 4, pser.Array((2,)), num_envs=streams)


@pytest.mark.parametrize(
    "size", [10**13, 2**24 + 1, 10**400, 0, -1, True, 1.5, "1"], ids=lambda s: str(s)[:20]
)
def test_a_batch_size_beyond_all_measure_is_refused_and_changes_nothing(size):
    index = index_of_three()
    before = dump_index(index)
    refused(index.sample, size)
    assert dump_index(index) == before
    memory = pser.ReplayMemory(4, pser.Array((2,)), seed=0)
    memory.add([0.0, 1.0], 0, 0.0, [1.0, 2.0], False, False)
    held = dump_memory(memory)
    refused(memory.sample, size)
    assert dump_memory(memory) == held


@pytest.mark.parametrize(
    "values",
    [
        {"start": float("nan"), "end": 1.0, "steps": 3},
        {"start": 0.0, "end": float("inf"), "steps": 3},
        {"start": "0", "end": 1.0, "steps": 3},
        {"start": 0.0, "end": 1.0, "steps": 0},
        {"start": 0.0, "end": 1.0, "steps": 1.5},
    ],
    ids=str,
)
def test_a_bad_anneal_is_refused(values):
    refused(pser.Anneal, **values)


@pytest.mark.parametrize("flag", ["no", 1, 0.0, None, "", [True]], ids=repr)
def test_a_flag_must_be_true_or_false(flag):
    for settings in (pser.PSER, pser.PER, pser.Uniform):
        refused(settings, stratified=flag)
    refused(pser.PSER, decay_on_insert=flag)


@pytest.mark.parametrize("stream", [-1, 99, 2**70, "0", None, 0.0], ids=str)
def test_cutting_a_stream_that_is_not_there_is_refused(stream):
    refused(index_of_three().cut, stream)


def test_a_huge_batch_is_refused_or_served_but_never_crashes():
    index = index_of_three()
    ids, weights = index.sample(100_000)
    assert ids.shape == weights.shape == (100_000,)


# ------------------------------------------------------------------------------------------ memory

X, Y = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
GOOD = {
    "observation": X,
    "action": np.array([0, 1]),
    "reward": np.array([0.5, 1.5]),
    "next_observation": Y,
    "terminated": np.array([False, False]),
    "truncated": np.array([False, False]),
}
BAD_ADDS = {
    "observation without its axis": {"observation": X[0]},
    "observation of another shape": {"observation": np.zeros((2, 4), np.float32)},
    "observation of three rows": {"observation": np.zeros((3, 3), np.float32)},
    "observation of another dtype": {"observation": np.zeros((2, 3), np.float64)},
    "complex observation": {"observation": np.zeros((2, 3), np.complex64)},
    "text observation": {"observation": [["a"] * 3] * 2},
    "no observation": {"observation": None},
    "dict observation": {"observation": {"x": X}},
    "next observation of another shape": {"next_observation": np.zeros((2, 2), np.float32)},
    "next observation of another dtype": {"next_observation": np.zeros((2, 3), np.float64)},
    "action of another shape": {"action": np.zeros((2, 2), np.int64)},
    "one action": {"action": np.zeros(1, np.int64)},
    "fractional action": {"action": np.array([0.5, 1.0])},
    "NaN reward": {"reward": [0.0, NAN]},
    "infinite reward": {"reward": [INF, 0.0]},
    "one reward": {"reward": [0.0]},
    "text reward": {"reward": ["a", "b"]},
    "one terminated": {"terminated": [False]},
    "fractional terminated": {"terminated": [0.5, 0.0]},
    "three truncated": {"truncated": [False] * 3},
    "negative priority": {"priority": [1.0, -1.0]},
    "NaN priority": {"priority": [NAN, 1.0]},
    "one priority": {"priority": [1.0]},
    "NaN TD error": {"td_error": [1.0, NAN]},
    "priority and TD error": {"priority": [1.0, 1.0], "td_error": [1.0, 1.0]},
    "stream out of range": {"stream": [0, 2]},
    "negative stream": {"stream": [-1, 0]},
    "one stream for two rows": {"stream": [0]},
    "three streams for two rows": {"stream": [0, 1, 0]},
}


@pytest.mark.parametrize("case", BAD_ADDS)
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_bad_add_is_refused_and_changes_nothing(case, n_step):
    memory, _ = memory_pair(6, pser.Array((3,), np.float32), num_envs=2, n_step=n_step)
    for _ in range(4):
        memory.add(**GOOD)
    before = dump_memory(memory)
    refused(memory.add, **{**GOOD, **BAD_ADDS[case]})
    assert dump_memory(memory) == before
    memory.check_invariants()
    memory.add(**GOOD)


def test_a_dict_observation_with_wrong_fields_is_refused_and_changes_nothing():
    memory, _ = memory_pair(6, {"x": pser.Array((3,), np.float32), "y": pser.Array((), np.int64)})
    good = {"x": X[0], "y": 1}
    memory.add(good, 0, 0.0, good, False, False)
    before = dump_memory(memory)
    for bad in ({"x": X[0]}, {"x": X[0], "y": 1, "z": 2}, X[0], {"x": X[0], "y": 1.5}, {}):
        refused(memory.add, bad, 0, 0.0, good, False, False)
        refused(memory.add, good, 0, 0.0, bad, False, False)
    assert dump_memory(memory) == before


@pytest.mark.parametrize("n_step", [1, 3])
def test_bad_frames_are_refused_and_change_nothing(n_step):
    memory, _ = memory_pair(8, pser.Frames((2, 3), stack=4), num_envs=2, n_step=n_step)
    games = [FrameGame(seed=e) for e in range(2)]

    def step():
        rows = [game.step("") for game in games]
        return np.stack([r[0] for r in rows]), np.stack([r[1] for r in rows])

    for _ in range(5):
        observation, following = step()
        memory.add(observation, [0, 0], [0.0, 0.0], following, [False] * 2, [False] * 2)
    before = dump_memory(memory)
    observation, following = step()
    unshifted = following.copy()
    unshifted[1, 0, 0, 0] ^= 1  # one bit of one old frame of the second environment
    for bad_observation, bad_following in [
        (observation, unshifted),
        (observation[:, :3], following),
        (observation, following[:, 1:]),
        (observation.astype(np.float32), following),
        (observation, following[:, :, :1]),
        (observation[0], following[0]),
    ]:
        refused(memory.add, bad_observation, [0, 0], [0.0, 0.0], bad_following, [False] * 2, [False] * 2)
        assert dump_memory(memory) == before
    memory.add(observation, [0, 0], [0.0, 0.0], following, [False] * 2, [False] * 2)
    memory.check_invariants()


def test_sampling_and_updating_a_memory_badly_changes_nothing():
    memory, _ = memory_pair(6, pser.Array((3,), np.float32), num_envs=2)
    empty = dump_memory(memory)
    refused(memory.sample, 4, beta=0.5)
    assert dump_memory(memory) == empty
    memory.add(**GOOD)
    before = dump_memory(memory)
    for case in BAD_UPDATES.values():
        refused(memory.update_priorities, *case)
    for case in BAD_SAMPLES.values():
        refused(memory.sample, **case)
    for stream in ([2], [-1], [0.5], "all"):
        refused(memory.end_episodes, stream=stream)
    refused(memory.priorities, [2])
    assert dump_memory(memory) == before


def test_sampling_before_the_first_n_step_transition_is_complete_is_refused():
    memory, _ = memory_pair(6, pser.Array((3,), np.float32), num_envs=2, n_step=3)
    memory.add(**GOOD)
    refused(memory.sample, 4, beta=0.5)


def test_errors_are_also_value_errors():
    assert issubclass(PserError, ValueError)


@pytest.mark.parametrize(
    "observation",
    [
        pser.Array((2**40, 2**40)),
        pser.Array((2**62,)),
        pser.Frames((2**40, 2**40)),
        {"a": pser.Array((2**50,), np.float64)},
    ],
    ids=str,
)
def test_a_memory_that_cannot_fit_is_refused_in_one_line(observation):
    with pytest.raises(PserError, match="must fit into memory") as caught:
        pser.ReplayMemory(10, observation)
    assert "\n" not in str(caught.value)


def test_a_dict_where_one_array_is_wanted_is_refused_with_what_to_do():
    spaces = pytest.importorskip("gymnasium.spaces")
    box = spaces.Box(0.0, 1.0, (2,))
    for action in (spaces.Dict(a=box), {"a": pser.Array((2,))}, spaces.Tuple([box])):
        refused(
            pser.ReplayMemory, 4, box, action, match="an action must be one array.*join the parts of a dict"
        )
    for inner in (spaces.Dict(a=box), {"a": box}, spaces.Tuple([box]), spaces.Text(3)):
        rule = "a field of a dict observation must be an array or a frame stack.*move the fields of an inner dict out"
        refused(pser.ReplayMemory, 4, {"outer": inner}, match=rule)
    refused(
        pser.ReplayMemory, 4, spaces.Dict(outer=spaces.Dict(a=box)), match="a field of a dict observation"
    )
    refused(
        pser.ReplayMemory, 4, spaces.Tuple([box]), match="an observation must be an array.*or a dict of these"
    )


@pytest.mark.parametrize("stream", [1.5, [0.0], "0"], ids=str)
def test_a_stream_that_is_no_whole_number_is_told_so(stream):
    memory = pser.ReplayMemory(4, pser.Array((1,)), num_envs=2, seed=0)
    row = np.zeros((1, 1), np.float32)
    rule = "stream must be whole numbers.*each row's environment"
    refused(memory.add, row, [0], [0.0], row, [False], [False], stream=stream, match=rule)
    refused(memory.end_episodes, stream, match=rule)
    refused(memory.index.append, [True], stream=stream, match=rule)


GB_8 = 8 * 10**9


def atari(capacity, *, kept=None, compress=False, capacity_bytes=None):
    """Each array on its own fits into 8 GB, but for the frames of a compressed memory at worst."""
    frames = pser.Frames((84, 84), compress=compress, capacity_bytes=capacity_bytes)
    return pser.ReplayMemory(capacity, kept or frames, seed=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: atari(200_000, kept=pser.Array((4, 84, 84), np.uint8)),
        lambda: atari(170_000, kept={"a": pser.Array((2, 84, 84), np.uint8), "b": pser.Array((7000,))}),
        lambda: atari(1_130_000),
        lambda: atari(1_130_000, compress=True, capacity_bytes=GB_8),
    ],
    ids=["arrays", "dict", "frames", "bounded"],
)
def test_a_memory_is_refused_if_its_arrays_together_do_not_fit(make, monkeypatch):
    monkeypatch.setattr(storage, "machine_bytes", lambda: GB_8)
    with pytest.raises(PserError, match=r"must fit into memory \(8 GB\), got .* GB: lower capacity, store"):
        make()


def test_a_memory_that_may_fit_is_made(monkeypatch, tmp_path):
    monkeypatch.setattr(storage, "machine_bytes", lambda: GB_8)
    for memory in (
        atari(1_000_000),
        atari(3_000_000, compress=True),
        atari(1_000_000, compress=True, capacity_bytes=GB_8 // 2),
    ):
        assert len(memory) == 0
    monkeypatch.setattr(storage, "machine_bytes", lambda: 1000)
    assert len(pser.ReplayMemory(100, pser.Array((4,)), storage="disk", path=tmp_path / "memory")) == 0
    monkeypatch.setattr(storage, "machine_bytes", lambda: None)
    assert len(pser.ReplayMemory(100, pser.Array((4,)))) == 0


@pytest.mark.parametrize("make", [pser.Array, pser.Frames])
def test_a_shape_of_too_many_axes_is_refused(make):
    assert len(pser.ReplayMemory(10, make((1,) * 32))) == 0
    with pytest.raises(PserError, match="axes"):
        make((1,) * 33)
