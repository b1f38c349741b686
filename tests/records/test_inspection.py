"""Inspections: what a memory held at one moment, and that it is read back as it was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.errors import PserError
from pser.files.container import write_container
from pser.records.inspection import (
    choose_episodes,
    first_steps,
    forget_inspections_after,
    inspect_memory,
    inspection_paths,
    read_inspection,
    write_inspection,
)


def played(prioritization, steps=120, capacity=80, seed=0, **settings):
    """A memory of two environments with episodes of many lengths, sampled and updated."""
    memory = pser.ReplayMemory(
        capacity,
        pser.Array((2,), np.float32),
        num_envs=2,
        prioritization=prioritization,
        seed=seed,
        **settings,
    )
    rng = np.random.default_rng(seed)
    for t in range(steps):
        now, then = np.full((2, 2), t, np.float32), np.full((2, 2), t + 1, np.float32)
        memory.add(now, rng.integers(0, 3, 2), rng.normal(size=2), then, rng.random(2) < 0.1, [False] * 2)
        if t > 10:
            batch = memory.sample(8)
            memory.update_priorities(batch.ids, rng.normal(size=8))
    return memory


def slow_first_steps(back):
    first = []
    for place, distance in enumerate(back):
        first.append(first[place - distance] if 0 < distance <= place else place)
    return first


@given(
    st.lists(st.integers(0, 4), max_size=40),
)
def test_first_steps_are_those_of_a_walk_back(back):
    assert first_steps(np.array(back, np.int32)).tolist() == slow_first_steps(back)


@given(
    back=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    steps=st.integers(1, 80),
    seed=st.integers(0, 99),
)
def test_chosen_episodes_are_whole_distinct_and_within_the_budget(back, steps, seed):
    rng = np.random.default_rng(seed)
    first = np.array(slow_first_steps(back))
    ids = 7 + np.arange(len(back))
    mass, replays = rng.random(len(back)), rng.integers(0, 9, len(back))
    chosen = choose_episodes(ids, np.array(back), mass, replays, steps)
    firsts = [episode[0] - 7 for episode in chosen]
    assert len(set(firsts)) == len(firsts) >= 1
    for start, episode in zip(firsts, chosen, strict=True):
        assert episode.tolist() == (7 + np.flatnonzero(first == start)).tolist()
    assert len(chosen) == 1 or sum(map(len, chosen)) <= steps
    heaviest = max(set(first.tolist()), key=lambda start: mass[first == start].sum())
    assert heaviest in firsts


@pytest.mark.parametrize("rule", [pser.PSER(), pser.PER(), pser.PER(variant="rank"), pser.Uniform()], ids=str)
def test_an_inspection_holds_what_the_memory_holds(rule):
    memory = played(rule)
    inspection = inspect_memory(memory, frames=240)
    columns, held = inspection.columns, memory.columns()
    assert len(inspection) == len(memory) == 80
    assert inspection.oldest_id == memory.index.oldest_id == 160
    np.testing.assert_allclose(columns["priority"], held["priority"], rtol=1e-6)
    for name in ("replays", "back", "reward", "terminated", "action"):
        assert columns[name].tolist() == held[name].tolist()
    if isinstance(rule, pser.PER) and rule.variant == "rank":
        np.testing.assert_allclose(columns["mass"], held["mass"], rtol=1e-6)
    else:
        assert "mass" not in columns
    assert inspection.memory["prioritization"]["type"] == type(rule).__name__
    assert inspection.drawn_ids.shape == (0, 0)


def test_taking_an_inspection_changes_nothing(tmp_path):
    memory = played(pser.PSER())
    memory.save(tmp_path / "before")
    inspect_memory(memory)
    memory.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_an_inspection_is_read_back_as_it_was(tmp_path):
    memory = played(pser.PSER(), n_step=3)
    drawn = [(memory.sample(8).ids.copy(), np.arange(8.0)) for _ in range(3)]
    inspection = inspect_memory(memory, frames=1_234, drawn=drawn)
    path = write_inspection(tmp_path / "inspect", inspection)
    assert inspection_paths(tmp_path / "inspect") == [path]
    back = read_inspection(path)
    assert (back.frames, back.memory, back.oldest_id) == (1_234, inspection.memory, inspection.oldest_id)
    assert back.columns.keys() == inspection.columns.keys()
    for name, column in inspection.columns.items():
        assert back.columns[name].dtype == column.dtype
        assert back.columns[name].tobytes() == column.tobytes()
    assert back.drawn_ids.tolist() == [ids.tolist() for ids, _ in drawn]
    assert back.drawn_td.tolist() == [list(range(8))] * 3
    assert back.pictures.kind == "vector"
    assert len(back.pictures.episodes) == len(inspection.pictures.episodes) > 3


def test_batches_of_several_sizes_are_refused():
    drawn = [(np.zeros(8, np.int64), np.zeros(8)), (np.zeros(4, np.int64), np.zeros(4))]
    with pytest.raises(PserError, match=r"of one size, got \[4, 8\]"):
        inspect_memory(played(pser.PSER()), drawn=drawn)


def test_an_empty_memory_can_be_inspected():
    inspection = inspect_memory(pser.ReplayMemory(4, pser.Array((), np.float32)))
    assert len(inspection) == 0
    assert inspection.pictures.kind == "none"


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_container(tmp_path / "frames-1.pser", {"weights": np.zeros(3)})
    with pytest.raises(PserError, match="is not an inspection"):
        read_inspection(tmp_path / "frames-1.pser")


def test_what_was_written_after_the_checkpoint_is_forgotten(tmp_path):
    memory = played(pser.PER(), steps=20)
    for frames in (100, 200, 300):
        write_inspection(tmp_path / "inspect", inspect_memory(memory, frames=frames))
    forget_inspections_after(tmp_path / "inspect", 200)
    assert [path.stem for path in inspection_paths(tmp_path / "inspect")] == [
        "frames-000000000100",
        "frames-000000000200",
    ]
    forget_inspections_after(tmp_path / "nowhere", 0)
