"""SEMANTICS: n-step returns. Tails are flushed, episode ends are never crossed, truncation bootstraps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from strategies import memory_pair

SCALAR = pser.Array((1,), np.float32)


def run(ends, n_step, gamma=0.5, capacity=100, cut_at_end=False, num_envs=1):
    """One environment; `ends` has "", "terminated" or "truncated" per step. Observations never repeat."""
    memory, model = memory_pair(capacity, SCALAR, n_step=n_step, gamma=gamma, num_envs=num_envs)
    for t, end in enumerate(ends):
        row = (
            np.float32([2 * t]),
            t,
            float(t % 5),
            np.float32([2 * t + 1]),
            end == "terminated",
            end == "truncated",
        )
        ids = memory.add(*row)
        assert ids.dtype == np.int64
        assert ids.tolist() == model.add_row(0, *row)
    if cut_at_end:
        memory.end_episodes()
        model.end_episode(0)
    assert len(memory) == len(model.index)
    return memory, model


def assert_gives_back(memory, model):
    """Sample until every retained transition was seen, and compare each with the model's."""
    seen = set()
    for _ in range(200):
        batch = memory.sample(64, beta=0.5)
        assert batch.reward.dtype == np.float32
        assert batch.discount.dtype == np.float32
        for row, transition in enumerate(batch.ids.tolist()):
            wanted = model.transitions[transition]
            np.testing.assert_array_equal(batch.observation[row], wanted.observation)
            np.testing.assert_array_equal(batch.next_observation[row], wanted.next_observation)
            assert batch.action[row] == wanted.action
            assert batch.reward[row] == pytest.approx(wanted.reward, rel=1e-6, abs=1e-6)
            assert batch.discount[row] == pytest.approx(wanted.discount, rel=1e-6, abs=0)
            assert bool(batch.terminated[row]) == wanted.terminated
            seen.add(transition)
        if seen == set(model.index.ids):
            return
    raise AssertionError(f"never sampled: {set(model.index.ids) - seen}")


def test_three_steps_by_hand():
    memory, _ = run(["", "", "", "terminated"], 3)
    batch = memory.sample(64, beta=0.5)
    by_id = {i: row for row, i in enumerate(batch.ids.tolist())}
    assert sorted(by_id) == [0, 1, 2, 3]
    rows = [by_id[i] for i in range(4)]
    # rewards 0 1 2 3, γ = 1/2
    assert batch.reward[rows].tolist() == [0 + 0.5 + 0.5, 1 + 1 + 0.75, 2 + 1.5, 3]
    assert batch.discount[rows].tolist() == [0.125, 0.0, 0.0, 0.0]
    assert batch.terminated[rows].tolist() == [False, True, True, True]
    assert batch.observation[rows, 0].tolist() == [0, 2, 4, 6]
    assert batch.next_observation[rows, 0].tolist() == [5, 7, 7, 7]


def test_nothing_is_stored_before_a_transition_is_complete():
    memory, _ = memory_pair(10, SCALAR, n_step=3)
    x = np.float32([0])
    assert memory.add(x, 0, 0.0, x, False, False).tolist() == []
    assert memory.add(x, 0, 0.0, x, False, False).tolist() == []
    assert len(memory) == 0
    assert memory.add(x, 0, 0.0, x, False, False).tolist() == [0]
    assert memory.add(x, 0, 0.0, x, False, True).tolist() == [1, 2, 3]


def test_truncation_bootstraps_from_the_true_final_observation():
    memory, model = run(["", "", "truncated", "", "", ""], 3)
    batch = memory.sample(64, beta=0.5)
    for row, transition in enumerate(batch.ids.tolist()):
        if transition < 3:
            assert batch.next_observation[row, 0] == 5
            assert batch.discount[row] == 0.5 ** (3 - transition)
            assert not batch.terminated[row]
    assert_gives_back(memory, model)


def test_terminated_and_truncated_together_do_not_bootstrap():
    memory, _ = memory_pair(4, SCALAR, gamma=0.5)
    memory.add(np.float32([0]), 0, 1.0, np.float32([1]), True, True)
    batch = memory.sample(2, beta=0.5)
    assert batch.discount.tolist() == [0.0, 0.0]
    assert batch.terminated.tolist() == [True, True]


def test_ending_the_episodes_flushes_what_is_pending():
    memory, model = run(["", "", "truncated", "", ""], 3, cut_at_end=True)
    assert len(memory) == 5
    assert_gives_back(memory, model)


def test_an_episode_shorter_than_n():
    memory, model = run(["terminated", "", "truncated", "terminated"], 5)
    assert_gives_back(memory, model)


@pytest.mark.parametrize("n_step", [1, 2, 3, 7])
def test_a_long_run_over_the_end_of_the_ring(n_step):
    rng = np.random.default_rng(n_step)
    ends = rng.choice(["", "terminated", "truncated"], size=100, p=[0.8, 0.1, 0.1]).tolist()
    memory, model = run(ends, n_step, gamma=0.99, capacity=17)
    memory.check_invariants()
    assert_gives_back(memory, model)


def test_each_environment_has_its_own_pending_steps():
    memory, model = memory_pair(40, SCALAR, n_step=3, gamma=0.5, num_envs=3)
    rng = np.random.default_rng(0)
    for t in range(15):
        streams = sorted(rng.choice(3, size=rng.integers(1, 4), replace=False).tolist())
        rows = [
            (
                np.float32([100 * e + t]),
                e,
                float(t),
                np.float32([100 * e + t + 0.5]),
                rng.random() < 0.15,
                False,
            )
            for e in streams
        ]
        columns = [np.stack([np.asarray(row[c]) for row in rows]) for c in range(6)]
        ids = memory.add(*columns, stream=streams)
        assert ids.tolist() == [
            i for e, row in zip(streams, rows, strict=True) for i in model.add_row(e, *row)
        ]
    assert_gives_back(memory, model)


def test_decay_walks_back_over_n_step_transitions():
    memory, model = memory_pair(10, SCALAR, n_step=3, eps=0.0, eta=0.0, rho=0.5, window=5)
    for t in range(6):
        row = (np.float32([t]), t, 0.0, np.float32([t + 1]), False, t == 5)
        memory.add(*row)
        model.add_row(0, *row)
    for i in (2, 5):
        memory.update_priorities([i], [64.0])
        model.index.update([i], [64.0])
    assert memory.priorities(np.arange(6)).tolist() == [model.index.priority(i) for i in range(6)]
    assert memory.priorities([4]).tolist() == [32.0]


@given(
    ends=st.lists(st.sampled_from(["", "", "", "terminated", "truncated"]), min_size=1, max_size=40),
    n_step=st.integers(1, 5),
    capacity=st.integers(1, 20),
)
def test_any_run_of_episodes_gives_back_what_the_model_says(ends, n_step, capacity):
    memory, model = run(ends, n_step, capacity=capacity, cut_at_end=True)
    memory.check_invariants()
    assert_gives_back(memory, model)
