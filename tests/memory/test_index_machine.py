"""A Hypothesis state machine: any sequence of calls leaves a `PriorityIndex` equal to the model."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import pser
from model import IndexModel
from pser.errors import PserError
from strategies import (
    append_both,
    as_prioritization,
    assert_covers,
    assert_same_index,
    assert_same_stats,
    assert_valid_draw,
    given_priorities,
    per_rules,
    pser_rules,
    rank_rules,
    set_both,
    td_errors,
    uniform_rules,
    update_both,
)

STARTS = st.sampled_from([False] * 14 + [True])  # long episodes, so that long windows matter


# Small ones that wrap again and again, and some that hold tiles of 16 steps of every stream, with and without a rest.
CAPACITIES = st.one_of(st.integers(1, 40), st.integers(41, 130))


class IndexMachine(RuleBasedStateMachine):
    """Random appends over streams, episode ends, overwrites, samples, updates, stale ids, save and load."""

    stated_rules = pser_rules

    @initialize(
        data=st.data(), capacity=CAPACITIES, streams=st.sampled_from([1, 2, 3]), seed=st.integers(0, 99)
    )
    def start(self, data, capacity, streams, seed):
        rules = data.draw(self.stated_rules)
        self.index = pser.PriorityIndex(capacity, as_prioritization(rules), num_streams=streams, seed=seed)
        self.model = IndexModel(capacity, rules, streams)
        self.rng = np.random.default_rng(seed)
        self.started = set()
        self.steps_since_saved = 0

    def firsts(self, streams, wanted):
        """A stream's very first transition begins an episode."""
        result = []
        for stream, first in zip(streams, wanted, strict=True):
            result.append(first or stream not in self.started)
            self.started.add(stream)
        return result

    def append_rows(self, data, streams, named):
        wanted = data.draw(st.lists(STARTS, min_size=len(streams), max_size=len(streams)))
        how = data.draw(st.sampled_from(["MaxPrio", "priority", "td_error"]))
        rows = len(streams)
        priority = td_error = None
        if how == "priority":
            priority = data.draw(st.lists(given_priorities, min_size=rows, max_size=rows))
        elif how == "td_error":
            td_error = data.draw(st.lists(td_errors, min_size=rows, max_size=rows))
        firsts = self.firsts(streams, wanted)
        append_both(
            self.index, self.model, firsts, streams if named else None, priority=priority, td_error=td_error
        )

    @rule(data=st.data(), repeats=st.integers(1, 12))
    def append_in_lockstep(self, data, repeats):
        for _ in range(repeats):
            self.append_rows(data, list(range(self.model.num_streams)), named=False)

    @rule(data=st.data())
    def append_named_streams(self, data):
        streams = data.draw(st.lists(st.integers(0, self.model.num_streams - 1), min_size=1, max_size=8))
        self.append_rows(data, streams, named=True)

    @precondition(lambda self: len(self.model) > 0)
    @rule(k=st.integers(1, 50), beta=st.sampled_from([0.0, 0.4, 0.5, 1.0]), data=st.data())
    def sample_and_maybe_update(self, k, beta, data):
        ids, weights = self.index.sample(k, beta=beta)
        uniforms = self.rng.random(k).tolist()
        assert_valid_draw(self.model, ids.tolist(), uniforms)
        np.testing.assert_allclose(weights, self.model.weights(ids.tolist(), beta), rtol=1e-12, atol=0)
        if data.draw(st.booleans()):
            few = data.draw(st.lists(td_errors, min_size=1, max_size=4))
            td = [few[j % len(few)] * (1 + j) for j in range(k)]
            update_both(self.index, self.model, ids.tolist(), td)

    @precondition(lambda self: self.model.next_id > 0)
    @rule(data=st.data())
    def update_any_id_ever_written(self, data):
        oldest = max(0, self.model.oldest_id - 5)  # a few overwritten ones among them
        rows = data.draw(
            st.lists(st.tuples(st.integers(oldest, self.model.next_id - 1), td_errors), max_size=12)
        )
        update_both(self.index, self.model, [i for i, _ in rows], [d for _, d in rows])

    @precondition(lambda self: self.model.next_id > 0)
    @rule(data=st.data())
    def set_priorities_of_any_id_ever_written(self, data):
        oldest = max(0, self.model.oldest_id - 5)
        rows = data.draw(
            st.lists(st.tuples(st.integers(oldest, self.model.next_id - 1), given_priorities), max_size=6)
        )
        set_both(self.index, self.model, [i for i, _ in rows], [p for _, p in rows])

    @rule(priority=given_priorities)
    def raise_the_largest_priority(self, priority):
        self.index.raise_max_priority(priority)
        self.model.raise_max_priority(priority)

    @precondition(lambda self: self.model.next_id > 0)
    @rule(data=st.data(), steps=st.integers(1, 12))
    def read_predecessors(self, data, steps):
        ids = data.draw(
            st.lists(st.integers(max(0, self.model.oldest_id - 5), self.model.next_id - 1), max_size=5)
        )
        got = self.index.predecessors(ids, steps)
        assert got.shape == (len(ids), steps)
        assert got.tolist() == self.model.predecessor_rows(ids, steps)

    @precondition(lambda self: len(self.model) > 0)
    @rule(positions=st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=9))
    def sample_at_positions(self, positions):
        """No random number is used up: the next sample's numbers are as predicted."""
        ids, weights = self.index.sample(len(positions), 0.4, positions=positions)
        assert_covers(self.model, ids.tolist(), positions)
        np.testing.assert_allclose(weights, self.model.weights(ids.tolist(), 0.4), rtol=1e-12, atol=0)

    @precondition(lambda self: self.model.next_id > 0)
    @rule(bad=st.sampled_from([float("nan"), float("inf"), 1e101]), data=st.data())
    def bad_update_changes_nothing(self, bad, data):
        good = data.draw(st.integers(self.model.oldest_id, self.model.next_id - 1))
        with pytest.raises(PserError):
            self.index.update([good, good], [5.0, bad])
        with pytest.raises(PserError):
            self.index.update([good, self.model.next_id], [5.0, 5.0])

    @precondition(lambda self: self.steps_since_saved > 3)  # else half of all steps would be this one
    @rule()
    def save_and_load(self):
        self.steps_since_saved = 0
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "index")
            self.index = pser.PriorityIndex.load(Path(folder) / "index")

    @invariant()
    def equals_the_model(self):
        if hasattr(self, "index"):
            self.steps_since_saved += 1
            assert_same_index(self.index, self.model)
            assert_same_stats(self.index.stats(), self.model)


class PerMachine(IndexMachine):
    stated_rules = per_rules


class RankMachine(IndexMachine):
    stated_rules = rank_rules


class UniformMachine(IndexMachine):
    stated_rules = uniform_rules


TestPser = IndexMachine.TestCase
TestPer = PerMachine.TestCase
TestRank = RankMachine.TestCase
TestUniform = UniformMachine.TestCase
