"""Shards draw as one memory of the same transitions would: probabilities, weights, largest priority, decay."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy import stats

import pser
from model import IndexModel, Rules, cell_of
from pser.cluster.shards import MemoryShards, Shards, draw_at, shares_of
from pser.errors import PserError
from strategies import as_prioritization, given_priorities, per_rules, pser_rules, td_errors, uniform_rules

STARTS = st.sampled_from([False] * 9 + [True])


class Pair:
    """K shards of a few streams each, and the model of one memory that holds all of it."""

    def __init__(self, rules, shards, streams_each, steps, seed=0):
        self.streams_each, self.num_shards = streams_each, shards
        self.parts = [
            pser.PriorityIndex(steps * streams_each, as_prioritization(rules), streams_each)
            for _ in range(shards)
        ]
        self.shards = Shards(self.parts, seed=seed)
        self.model = IndexModel(steps * streams_each * shards, rules, streams_each * shards)
        self.id_of = []
        """Id in the model → id among the shards; overwritten ones too."""

    def append(self, firsts, priority=None, td_error=None):
        """One step of every stream; each shard hears of the largest priority before its own rows."""
        for k, part in enumerate(self.parts):
            rows = slice(k * self.streams_each, (k + 1) * self.streams_each)
            given = {"priority": priority, "td_error": td_error}
            given = {name: None if values is None else values[rows] for name, values in given.items()}
            self.shards.share_max_priority()
            ids = part.append(np.asarray(firsts[rows], bool), **given)
            self.id_of += self.shards.ids_of(k, ids).tolist()
        self.shards.share_max_priority()
        self.model.append(firsts, priority=priority, td_error=td_error)

    def model_ids(self, ids):
        where = {shard_id: i for i, shard_id in enumerate(self.id_of)}
        return [where[i] for i in ids.tolist()]

    def assert_same(self):
        assert len(self.shards) == len(self.model)
        np.testing.assert_allclose(self.shards.max_priority, self.model.max_priority, rtol=1e-12, atol=0)
        for part in self.parts:
            part.check_invariants()
            assert part.max_priority == self.shards.max_priority
        if len(self.model) == 0:
            return
        ids = [self.id_of[i] for i in self.model.ids]
        expected = list(self.model.probabilities().values())
        np.testing.assert_allclose(self.shards.probabilities(ids), expected, rtol=1e-12, atol=0)
        np.testing.assert_allclose(self.shards.total_mass, self.model.total_mass(), rtol=1e-12, atol=0)

    def assert_covers(self, ids, positions):
        """Along the mass of all shards, each id lies where its position points."""
        probabilities = self.model.probabilities()
        flat = self.model.rules.kind == "uniform" or self.model.total_mass() == 0.0
        capacity, streams = self.parts[0].capacity, self.parts[0].num_streams

        def place(i):
            within, k = divmod(self.id_of[i], self.num_shards)
            return k, within if flat else cell_of(within % capacity, capacity, streams)

        above = 0.0
        bounds = {}
        for i in sorted(probabilities, key=place):
            bounds[i] = above, above + probabilities[i]
            above += probabilities[i]
        for i, position in zip(self.model_ids(ids), positions, strict=True):
            assert probabilities[i] > 0.0
            assert bounds[i][0] - 1e-9 <= position <= bounds[i][1] + 1e-9


class ShardsMachine(RuleBasedStateMachine):
    """Appends, overwrites, draws, updates and stale ids, with the streams spread over shards."""

    stated_rules = pser_rules

    @initialize(
        data=st.data(),
        shards=st.sampled_from([1, 2, 3]),
        streams_each=st.sampled_from([1, 2]),
        steps=st.integers(1, 12),
        seed=st.integers(0, 99),
    )
    def start(self, data, shards, streams_each, steps, seed):
        self.pair = Pair(data.draw(self.stated_rules), shards, streams_each, steps, seed)
        self.rng = np.random.default_rng(seed)

    @rule(data=st.data(), how=st.sampled_from(["MaxPrio", "priority", "td_error"]))
    def append(self, data, how):
        streams = self.pair.model.num_streams
        values = st.lists(
            td_errors if how == "td_error" else given_priorities, min_size=streams, max_size=streams
        )
        given = {} if how == "MaxPrio" else {how: data.draw(values)}
        firsts = data.draw(st.lists(STARTS, min_size=streams, max_size=streams))
        self.pair.append(firsts if self.pair.id_of else [True] * streams, **given)

    @precondition(lambda self: len(self.pair.model) > 0)
    @rule(k=st.integers(1, 40), beta=st.sampled_from([0.0, 0.4, 1.0]))
    def sample(self, k, beta):
        ids, weights = self.pair.shards.sample(k, beta)
        self.pair.assert_covers(ids, self.pair.model.targets(self.rng.random(k).tolist()))
        expected = self.pair.model.weights(self.pair.model_ids(ids), beta)
        np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=0)

    @precondition(lambda self: len(self.pair.model) > 0)
    @rule(positions=st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=9))
    def sample_at_positions(self, positions):
        ids, _ = self.pair.shards.sample(len(positions), 0.5, positions)
        self.pair.assert_covers(ids, positions)

    @precondition(lambda self: self.pair.id_of)
    @rule(data=st.data())
    def update_any_id_ever_written(self, data):
        oldest = max(0, self.pair.model.oldest_id - 5)
        ids = st.integers(oldest, self.pair.model.next_id - 1)
        rows = data.draw(st.lists(st.tuples(ids, td_errors), max_size=12))
        deltas = [delta for _, delta in rows]
        applied = self.pair.shards.update([self.pair.id_of[i] for i, _ in rows], deltas)
        self.pair.shards.share_max_priority()
        assert applied == self.pair.model.update([i for i, _ in rows], deltas)

    @precondition(lambda self: self.pair.id_of)
    @rule(bad=st.sampled_from([float("nan"), float("inf"), 1e101]))
    def a_bad_update_changes_nothing(self, bad):
        newest = self.pair.id_of[-1]
        with pytest.raises(PserError, match="TD errors"):
            self.pair.shards.update([self.pair.id_of[0], newest], [5.0, bad])
        with pytest.raises(PserError, match="never written"):
            self.pair.shards.update([newest, newest + self.pair.num_shards], [5.0, 5.0])

    @invariant()
    def equals_the_model(self):
        if hasattr(self, "pair"):
            self.pair.assert_same()


class PerMachine(ShardsMachine):
    stated_rules = per_rules


class UniformMachine(ShardsMachine):
    stated_rules = uniform_rules


TestPser = ShardsMachine.TestCase
TestPer = PerMachine.TestCase
TestUniform = UniformMachine.TestCase


def filled(seed=0, shards=3, steps=20, **rules):
    """Three shards of unequal mass: TD errors from a heavy-tailed law, the last shard's ten times as large."""
    pair = Pair(Rules(**rules), shards, 2, steps, seed)
    rng = np.random.default_rng(99)
    for step in range(steps):
        deltas = rng.standard_gamma(0.4, size=2 * shards)
        deltas[-2:] *= 10.0
        pair.append([step % 7 == 0] * (2 * shards), td_error=deltas.tolist())
    return pair


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_frequencies_over_shards_pass_a_chi_square_test(alpha, stratified):
    pair = filled(alpha=alpha, stratified=stratified, eps=0.05)
    batches, k = 3000, 25
    counts = np.zeros(max(pair.id_of) + 1)
    for _ in range(batches):
        np.add.at(counts, pair.shards.sample(k)[0], 1)
    expected = np.array(list(pair.model.probabilities().values())) * batches * k
    assert expected.min() >= 5
    statistic = ((counts[pair.id_of] - expected) ** 2 / expected).sum()
    # Stratified draws vary less than independent ones: only the upper tail can fail.
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-4


def test_one_shard_draws_the_very_batches_of_the_memory():
    pair = filled(shards=1, seed=5)
    pair.parts[0].reseed(5)
    for _ in range(20):
        (ids, weights), (own_ids, own_weights) = pair.shards.sample(32), pair.parts[0].sample(32)
        np.testing.assert_array_equal(ids, own_ids)
        np.testing.assert_allclose(weights, own_weights, rtol=1e-12, atol=0)


def test_equal_shares_of_a_batch_would_be_wrong():
    """The draw of `filled` tells mass from size: the heavy shard gets more than a third of the rows."""
    pair = filled(alpha=1.0)
    ids, _ = pair.shards.sample(3000)
    shard = np.bincount(ids % 3, minlength=3) / 3000
    masses = np.array([part.total_mass for part in pair.parts])
    np.testing.assert_allclose(shard, masses / masses.sum(), atol=1e-3)
    assert shard[2] > 0.5


def test_a_surprise_in_one_shard_lifts_the_cap_of_added_decay_in_another():
    pair = Pair(Rules(decay="add", rho=0.8, eta=0.0), shards=2, streams_each=1, steps=4)
    pair.append([True, True])
    pair.append([False, False])  # all at the largest priority, 1
    pair.shards.update([pair.id_of[2], pair.id_of[3]], [0.9, 5.0])  # the first shard comes first
    pair.model.update([2, 3], [0.9, 5.0])
    assert pair.model.priority(0) > 1.0
    pair.assert_same()


def test_an_overwritten_id_lifts_no_cap():
    pair = Pair(Rules(decay="add"), shards=2, streams_each=1, steps=1)
    pair.append([True, True])
    pair.append([False, False])
    assert pair.shards.update([pair.id_of[0], pair.id_of[3]], [7.0, 0.5]) == 1
    assert pair.shards.max_priority == 1.0


def test_without_any_mass_shards_are_drawn_by_their_size():
    np.testing.assert_array_equal(shares_of(np.zeros(3), np.array([1, 0, 3])), [0.25, 0.0, 0.75])


def test_shards_without_mass_are_never_drawn():
    positions = np.linspace(0.0, 1.0, 1001)[:-1]
    draw = draw_at(np.append(positions, np.nextafter(1.0, 0.0)), np.array([0.0, 0.3, 0.0, 0.7, 0.0]))
    assert set(draw.shard.tolist()) == {1, 3}
    assert draw.position.min() >= 0.0
    assert draw.position.max() < 1.0


def test_empty_shards_cannot_be_sampled():
    shards = Shards([pser.PriorityIndex(4, pser.PSER()) for _ in range(2)])
    with pytest.raises(PserError, match="cannot sample 3 transitions from 2 empty shards"):
        shards.sample(3)


def test_ranks_over_shards_are_refused():
    indexes = [pser.PriorityIndex(4, pser.PER(variant="rank")) for _ in range(2)]
    with pytest.raises(PserError, match="ranks are known within one shard only, got 2"):
        Shards(indexes)
    assert len(Shards(indexes[:1])) == 0


def test_shards_of_different_rules_are_refused():
    with pytest.raises(PserError, match="share one prioritization"):
        Shards([pser.PriorityIndex(4, pser.PSER()), pser.PriorityIndex(4, pser.PER())])


@pytest.mark.parametrize("position", [-0.1, 1.0, float("nan")])
def test_a_position_outside_the_mass_is_refused(position):
    pair = filled(steps=2)
    with pytest.raises(PserError, match="position must be from 0 to below 1"):
        pair.shards.sample(1, 0.5, [position])


def memories(count, prioritization, observation):
    return [
        pser.ReplayMemory(30, observation, num_envs=1, prioritization=prioritization) for _ in range(count)
    ]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("weights", ["batch", "memory"])
@pytest.mark.parametrize("stratified", [True, False])
def test_a_batch_of_memories_holds_what_each_of_them_was_given(stratified, weights, named):
    spec = pser.Array((2,), np.float32)
    parts = memories(3, pser.PSER(stratified=stratified, weights=weights), {"a": spec} if named else spec)
    rng = np.random.default_rng(4)
    for k, memory in enumerate(parts):
        for step in range(10 * k):  # the first has none
            seen = [np.full((1, 2), 100 * k + step + ahead, np.float32) for ahead in (0, 1)]
            now, following = ({"a": rows} for rows in seen) if named else seen
            memory.add(now, [k], [float(step)], following, [step % 5 == 4], [False], td_error=rng.random(1))
    shards = MemoryShards(parts, seed=3)
    same = Shards([memory.index for memory in parts], seed=3)
    ids, expected = same.sample(64, 0.7)
    batch = shards.sample_batch(64, 0.7)
    np.testing.assert_array_equal(batch.ids, ids)
    np.testing.assert_allclose(batch.weights, expected, rtol=1e-6, atol=0)
    np.testing.assert_allclose(batch.probabilities, same.probabilities(ids), rtol=1e-12, atol=0)
    step, k = batch.ids // 3, batch.ids % 3
    assert set(k.tolist()) == {1, 2}
    observed, following = (
        values["a"] if named else values for values in (batch.observation, batch.next_observation)
    )
    np.testing.assert_array_equal(observed[:, 0], 100 * k + step)
    np.testing.assert_array_equal(following[:, 1], 100 * k + step + 1)
    np.testing.assert_array_equal(batch.action, k)
    np.testing.assert_array_equal(batch.reward, step)
    np.testing.assert_array_equal(batch.terminated, step % 5 == 4)
