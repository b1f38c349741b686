"""Reading a memory without sampling: the columns of its index, and transitions by their ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from memory.games import FrameGame, MemoryDriver
from model import IndexModel
from pser.errors import PserError
from pser.memory.index import SOURCES
from strategies import any_rules, append_both, as_prioritization, memory_pair, update_both


@given(rules=any_rules, capacity=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_columns_of_any_history_are_the_models(rules, capacity, seed):
    index = pser.PriorityIndex(capacity, as_prioritization(rules), num_streams=2, seed=seed)
    model = IndexModel(capacity, rules, 2)
    rng = np.random.default_rng(seed)
    for t in range(12):
        td = (rng.normal(size=2) ** 3).tolist()
        first = (rng.random(2) < (0.2 if t else 2.0)).tolist()
        append_both(index, model, first, td_error=td if t % 2 else None)
        ids = rng.integers(max(0, index.oldest_id - 2), index.next_id, 6).tolist()
        update_both(index, model, ids, (rng.normal(size=6) ** 3).tolist())
    columns, entries = index.columns(), model.entries
    assert columns.ids.tolist() == model.ids
    np.testing.assert_allclose(columns.priority, [e.priority for e in entries.values()], rtol=1e-12, atol=0)
    np.testing.assert_allclose(columns.mass, list(model.masses().values()), rtol=1e-12, atol=0)
    assert columns.replays.tolist() == [e.replays for e in entries.values()]
    assert [SOURCES[k] for k in columns.source] == [model.source_of(e) for e in entries.values()]
    if rules.kind in ("pser", "per"):
        np.testing.assert_allclose(columns.own_mass, [e.own_mass for e in entries.values()], rtol=1e-6)
    for transition, back in zip(columns.ids.tolist(), columns.back.tolist(), strict=True):
        predecessor = entries[transition].predecessor
        if back and transition - back >= index.oldest_id:
            assert transition - back == predecessor
        else:  # an episode's first step, or one whose predecessor has left the memory
            assert predecessor is None or predecessor < index.oldest_id


def test_columns_of_an_empty_index_are_empty():
    columns = pser.PriorityIndex(4, pser.PSER()).columns()
    assert [len(column) for column in columns] == [0] * len(columns)


@pytest.mark.parametrize("n_step", [1, 3])
def test_transitions_are_read_by_their_ids_bit_for_bit(n_step):
    memory, model = memory_pair(20, pser.Frames((2, 3), stack=4), num_envs=2, n_step=n_step)
    driver = MemoryDriver(memory, model, [FrameGame(seed=0), FrameGame(seed=1)])
    for t in range(25):
        driver.step(["terminated" if t % 7 == 6 else "", "truncated" if t % 5 == 4 else ""])
    ids = np.array(model.index.ids)[::-1]
    batch = memory[ids]
    assert batch.ids.tolist() == ids.tolist()
    driver.compare_batch(batch._replace(weights=np.array(model.index.weights(ids.tolist(), 0.5))))
    assert (batch.weights == 1.0).all()
    columns = memory.columns()
    assert columns["ids"].tolist() == model.index.ids
    for name in ("action", "reward", "discount", "terminated"):
        assert columns[name].tolist() == getattr(batch, name)[::-1].tolist()


def test_one_id_gives_one_transition_without_the_row_axis():
    spec = {"position": pser.Array((2,), np.float32), "lamp": pser.Array((), np.bool_)}
    memory = pser.ReplayMemory(8, spec, seed=0)
    for t in range(5):
        now, then = [{"position": np.float32([k, -k]), "lamp": k % 2 == 0} for k in (t, t + 1)]
        memory.add(now, t, float(t), then, t == 4, False)
    transition = memory[3]
    assert transition.observation["position"].tolist() == [3.0, -3.0]
    assert transition.next_observation["lamp"]
    assert (transition.action, transition.reward, transition.ids) == (3, 3.0, 3)
    assert not transition.terminated
    assert memory[np.int64(4)].terminated


def test_reading_changes_nothing_and_lends_nothing():
    memory = pser.ReplayMemory(4, pser.Array((), np.float32), seed=0)
    for t in range(4):
        memory.add(float(t), 0, 0.0, float(t + 1), False, False)
    read, before = memory[[0, 1]], memory.stats()
    memory.sample(2)
    memory.add(9.0, 0, 0.0, 10.0, False, False)
    assert read.observation.tolist() == [0.0, 1.0]
    assert before["replays_max"] == memory.stats()["replays_max"] == 0


@pytest.mark.parametrize(
    ("wanted", "rule"), [(0, "no longer in memory"), (9, "never written"), (-1, "never")]
)
def test_an_id_that_is_not_in_memory_is_an_error(wanted, rule):
    memory = pser.ReplayMemory(4, pser.Array((), np.float32), seed=0)
    for t in range(6):
        memory.add(float(t), 0, 0.0, float(t + 1), False, False)
    with pytest.raises(PserError, match=rule):
        memory[wanted]
    with pytest.raises(PserError, match=rule):
        memory[[5, wanted]]


def test_no_ids_give_no_rows():
    memory = pser.ReplayMemory(4, pser.Array((2,), np.float32), seed=0)
    assert memory[[]].observation.shape == (0, 2)
