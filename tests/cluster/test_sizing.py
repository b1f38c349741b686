"""The sizing model: its arithmetic by hand, its bytes beside those of a real memory, its figures in the docs."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.cluster import sizing_table
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.cluster.sizing import (
    ATARI,
    GIGABIT,
    HORGAN,
    MINATAR,
    USABLE,
    Costs,
    Load,
    Machine,
    Pace,
    Transition,
    demand,
    most_batches_per_second,
    most_transitions_per_second,
    plan,
    steps_per_second,
    steps_per_second_on,
)
from pser.errors import PserError

DOCS = Path(__file__).parents[2] / "docs"
COSTS = Costs(add_seconds=64e-6, batch_seconds=11e-3)
PACE = Pace(step_seconds=1e-3, update_seconds=5e-3, samples_per_insert=8.0, batch_size=32)


def test_apex_as_published_fits_one_shard_on_ten_gigabit():
    asked = demand(HORGAN, ATARI, COSTS)
    assert asked.ingest_cores == pytest.approx(0.8)
    assert asked.batch_cores == pytest.approx(0.209)
    assert asked.in_bytes_per_second == pytest.approx(88e6, rel=0.01)
    assert asked.out_bytes_per_second == pytest.approx(343e6, rel=0.01)
    assert asked.memory_bytes == pytest.approx(14e9, rel=0.03)
    cheap = demand(HORGAN, ATARI, Costs(add_seconds=19e-6, batch_seconds=11e-3))
    assert plan(cheap) == (1, "one is enough")
    assert plan(asked) == (2, "cores")
    assert plan(cheap, Machine(link_bytes_per_second=GIGABIT)) == (4, "network")
    assert plan(cheap, Machine(memory_bytes=8e9)) == (2, "memory")


@pytest.mark.parametrize("spec", [pser.Array((4, 10, 10), np.uint8), pser.Frames((84, 84), 4)])
def test_a_transition_in_memory_weighs_what_the_model_says(spec):
    transition, capacity = MINATAR if isinstance(spec, pser.Array) else ATARI, 1000
    memory = pser.ReplayMemory(capacity, spec, prioritization=pser.PSER())
    rng = np.random.default_rng(0)
    now = rng.integers(0, 255, (1, 4, *spec.shape[-2:]), np.uint8)
    for _ in range(2 * capacity):
        following = np.concatenate([now[:, 1:], rng.integers(0, 255, now[:, :1].shape, np.uint8)], axis=1)
        memory.add(now, [0], [0.0], following, [False], [False])
        now = following
    assert len(memory) == capacity
    file = io.BytesIO()
    memory.save(file)
    assert file.tell() == pytest.approx(capacity * transition.kept_bytes, rel=0.1)


def test_a_sampled_row_weighs_what_the_model_says():
    memory = pser.ReplayMemory(10, pser.Frames((84, 84), 4))
    stack = np.zeros((1, 4, 84, 84), np.uint8)
    memory.add(stack, [0], [0.0], stack, [False], [False])
    batch = memory.sample(1)
    both = batch.observation.base.nbytes
    rest = sum(getattr(batch, name).nbytes for name in batch._fields if "observation" not in name)
    update = batch.ids.nbytes + np.zeros(1).nbytes
    assert both + rest + update == ATARI.sampled_bytes


loads = st.builds(
    Load,
    transitions_per_second=st.floats(0, 1e6),
    batches_per_second=st.floats(0, 1e4),
    batch_size=st.integers(1, 4096),
    capacity=st.integers(1, 10**9),
)
transitions = st.builds(Transition, observation_bytes=st.integers(1, 10**6), stack=st.integers(1, 8))
costs = st.builds(Costs, add_seconds=st.floats(1e-9, 1.0), batch_seconds=st.floats(1e-9, 1.0))


@given(load=loads, transition=transitions, costs=costs)
def test_no_shard_of_a_plan_is_asked_for_more_than_it_has_and_none_is_idle(load, transition, costs):
    machine = Machine()
    asked = demand(load, transition, costs)
    shards, limit = plan(asked, machine)

    def fits(count):
        link = USABLE * machine.link_bytes_per_second * (1 + 1e-9)
        return (
            (asked.ingest_cores + asked.batch_cores) / count <= USABLE * (1 + 1e-9)
            and asked.in_bytes_per_second / count <= link
            and asked.out_bytes_per_second / count <= link
            and asked.memory_bytes / count <= machine.memory_bytes * (1 + 1e-9)
        )

    assert fits(shards)
    assert (limit == "one is enough") == (shards == 1)
    assert shards == 1 or not fits((shards - 1) * (1 - 1e-6))


@given(transition=transitions, costs=costs, batch_size=st.integers(1, 4096))
def test_the_most_that_one_shard_carries_is_planned_with_one(transition, costs, batch_size):
    most = most_transitions_per_second(transition, costs)
    ingest = Load(transitions_per_second=most, batches_per_second=0, batch_size=batch_size, capacity=1)
    batches = most_batches_per_second(batch_size, transition, costs)
    serving = Load(transitions_per_second=0, batches_per_second=batches, batch_size=batch_size, capacity=1)
    for load in (ingest, serving):
        below, above = (
            Load(
                transitions_per_second=load.transitions_per_second * share,
                batches_per_second=load.batches_per_second * share,
                batch_size=batch_size,
                capacity=1,
            )
            for share in (0.999, 1.001)
        )
        assert plan(demand(below, transition, costs)).shards == 1
        assert plan(demand(above, transition, costs)).shards == 2


def test_a_run_is_as_fast_as_its_actors_until_shards_or_learner_are_busy():
    free = Costs(add_seconds=1e-12, batch_seconds=1e-12)
    slow = Pace(step_seconds=0.01, update_seconds=5e-3, samples_per_insert=8.0, batch_size=32)
    # 8 rows for each transition are a batch of 32 every 4: the learner's 200 updates a second are 800 transitions.
    rates = [steps_per_second(actors, slow, free) for actors in (1, 2, 4, 7, 16)]
    assert [rate for rate, _ in rates] == pytest.approx([100.0, 200.0, 400.0, 700.0, 800.0])
    assert [limit for _, limit in rates] == ["actors"] * 4 + ["learner"]
    busy = Costs(add_seconds=1e-3, batch_seconds=4e-3)
    assert steps_per_second(16, slow, busy) == (pytest.approx(USABLE / 2e-3), "shards")
    assert steps_per_second(16, slow, busy, shards=2) == (pytest.approx(2 * USABLE / 2e-3), "shards")


def test_shared_cores_are_spent_whatever_the_number_of_actors():
    free = Costs(add_seconds=1e-12, batch_seconds=1e-12)
    assert steps_per_second_on(2, PACE, free) == pytest.approx(2 / (1e-3 + 5e-3 / 4))
    assert steps_per_second_on(4, PACE, free) == pytest.approx(2 * steps_per_second_on(2, PACE, free))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Costs(add_seconds=0.0, batch_seconds=1.0), "add_seconds must be above 0"),
        (lambda: Costs(add_seconds=1.0, batch_seconds=math.nan), "batch_seconds must be above 0"),
        (lambda: Transition(observation_bytes=0), "observation_bytes must be at least 1"),
        (lambda: steps_per_second(0, PACE, COSTS), "at least 1 actor and 1 shard, got 0 and 1"),
    ],
)
def test_nonsense_is_refused(make, told):
    with pytest.raises(PserError, match=told):
        make()


def test_the_figures_of_the_page_are_those_of_the_measured_costs():
    measured = DOCS / "benchmarks-ray.json"
    if not measured.exists():
        pytest.skip("not measured yet: make bench-ray")
    results = json.loads(measured.read_text(encoding="utf-8"))
    written = (DOCS / "cluster.md").read_text(encoding="utf-8")
    _, _, rest = written.partition(sizing_table.BEGIN)
    between, _, _ = rest.partition(sizing_table.END)
    assert between.strip().splitlines() == sizing_table.table(results)
    assert "\n".join(sizing_table.table(results)) in (DOCS / "benchmarks-ray.md").read_text(encoding="utf-8")
