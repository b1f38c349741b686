"""SEMANTICS: a window lies inside one episode of one stream; which step is chosen follows its priority exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from strategies import any_rules, as_prioritization


class Story:
    """A memory whose observations tell (stream, episode, step), and the id of every transition ever completed."""

    def __init__(self, rng, capacity, streams, n_step, rule, steps, fields="plain", lockstep=True):
        spec = {"where": pser.Array((3,), np.int64), "half": pser.Array((), np.float32)}
        self.fields = fields
        self.memory = pser.ReplayMemory(
            capacity,
            pser.Array((3,), np.int64) if fields == "plain" else spec,
            num_envs=streams,
            prioritization=rule,
            n_step=n_step,
            gamma=0.5,
            seed=int(rng.integers(2**32)),
        )
        self.episode, self.time = np.zeros(streams, int), np.zeros(streams, int)
        for _ in range(steps):
            chosen = np.arange(streams) if lockstep else np.flatnonzero(rng.random(streams) < 0.6)
            if len(chosen):
                self.step(rng, chosen)
        ids = np.arange(self.memory.index.oldest_id, self.memory.index.next_id)
        rows = self.where(self.memory[ids].observation) if len(ids) else []
        self.places = {int(number): tuple(row.tolist()) for number, row in zip(ids, rows, strict=True)}

    def step(self, rng, chosen):
        end, terminal = rng.random(len(chosen)) < 0.15, rng.random(len(chosen)) < 0.5
        now = np.stack([chosen, self.episode[chosen], self.time[chosen]], axis=1)
        after = now + np.array([0, 0, 1])
        self.memory.add(
            self.seen(now),
            now[:, 2],
            now[:, 2] + 1.0,
            self.seen(after),
            end & terminal,
            end & ~terminal,
            td_error=rng.normal(size=len(chosen)),
            stream=chosen,
        )
        self.time[chosen] += 1
        self.time[chosen[end]] = 0
        self.episode[chosen[end]] += 1

    def seen(self, rows):
        return (
            rows if self.fields == "plain" else {"where": rows, "half": (rows[:, 2] / 2).astype(np.float32)}
        )

    def where(self, observation):
        return observation if self.fields == "plain" else observation["where"]

    def episode_of(self, number):
        """The retained ids of this transition's episode, in order."""
        stream, episode, _ = self.places[number]
        steps = sorted((t, i) for i, (s, e, t) in self.places.items() if (s, e) == (stream, episode))
        return [i for _, i in steps]


def laid(episode, chosen, length, burn_in, overlap, uniform):
    """The rule of windows, said slowly: (ids, how many of them are burn-in)."""
    place, size = episode.index(chosen), len(episode)
    if overlap is None:
        starts = [s for s in range(size) if s <= place < s + length and s + length <= size] or [0]
        starts.reverse()
    else:
        starts = [s for s in range(0, size, length - overlap) if s <= place < s + length]
    start = starts[min(int(uniform * len(starts)), len(starts) - 1)]
    first = max(0, start - burn_in)
    return episode[first : start + length], start - first


shapes = st.integers(1, 7).flatmap(
    lambda length: st.tuples(
        st.just(length), st.integers(0, 4), st.one_of(st.none(), st.integers(0, length - 1))
    )
)
stories = st.fixed_dictionaries(
    {
        "capacity": st.integers(1, 40),
        "streams": st.integers(1, 3),
        "n_step": st.integers(1, 3),
        "steps": st.integers(1, 60),
        "fields": st.sampled_from(["plain", "dict"]),
        "lockstep": st.booleans(),
    }
)


@given(
    told=stories,
    rule=any_rules,
    shape=shapes,
    batch=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_windows_are_those_of_the_slow_rule(told, rule, shape, batch, seed, data, tmp_path_factory):
    rng = np.random.default_rng(seed)
    story = Story(rng, rule=as_prioritization(rule), **told)
    memory, (length, burn_in, overlap) = story.memory, shape
    if len(memory) == 0:
        return
    for _ in range(2):  # the second time with successors kept while steps were added
        path = tmp_path_factory.mktemp("story") / "memory"
        memory.save(path)
        twin = pser.ReplayMemory.load(path)
        ids, weights = twin.index.sample(batch, 0.7)
        uniforms = twin.index._rng.random(batch)
        got = memory.sample_sequences(batch, length, burn_in, overlap, beta=0.7)
        np.testing.assert_array_equal(got.chosen, ids)
        np.testing.assert_array_equal(got.weights, weights.astype(np.float32))
        np.testing.assert_array_equal(got.probabilities, twin.index.probabilities(ids))
        for row in range(batch):
            episode = story.episode_of(int(ids[row]))
            expected, warm = laid(episode, int(ids[row]), length, burn_in, overlap, uniforms[row])
            assert_window(story, got, row, expected, warm)
        before = memory.index.next_id
        while memory.index.next_id == before:
            story.step(rng, np.arange(told["streams"]))
        story.places = {
            int(i): tuple(story.where(memory[[i]].observation)[0].tolist())
            for i in range(memory.index.oldest_id, memory.index.next_id)
        }
    memory.check_invariants()


def assert_window(story, got, row, expected, warm):
    memory, steps, rows = story.memory, len(expected), got.ids.shape[1]
    assert got.ids[row].tolist() == expected + [-1] * (rows - steps)
    assert got.mask[row].tolist() == [True] * steps + [False] * (rows - steps)
    assert got.learn[row].tolist() == [False] * warm + [True] * (steps - warm) + [False] * (rows - steps)
    single = memory[np.array(expected)]
    for side in ("observation", "next_observation"):
        mine, whole = getattr(single, side), getattr(got, side)
        for name in mine if isinstance(mine, dict) else [None]:
            part, window = (mine, whole) if name is None else (mine[name], whole[name])
            np.testing.assert_array_equal(window[row, :steps], part)
            assert not window[row, steps:].any()
    for name in ("action", "reward", "discount", "terminated"):
        np.testing.assert_array_equal(getattr(got, name)[row, :steps], getattr(single, name))
        assert not getattr(got, name)[row, steps:].any()
    places = [story.places[number] for number in expected]
    assert len({place[:2] for place in places}) == 1
    assert np.diff([place[2] for place in places]).tolist() == [1] * (steps - 1)
    if places[0][2] == 0:
        assert got.from_start[row]


def one_episode(steps=12, rule=None, **settings):
    memory = pser.ReplayMemory(
        100,
        pser.Array((), np.float32),
        prioritization=rule or pser.PER(alpha=1.0, eps=0.0),
        seed=0,
        **settings,
    )
    for step in range(steps):
        memory.add(float(step), 0, 1.0, step + 1.0, step == steps - 1, False, priority=1.0 + step)
    return memory


@pytest.mark.parametrize("overlap", [None, 0, 2])
def test_steps_are_chosen_as_often_as_their_priority_says_also_at_the_ends(overlap):
    memory = one_episode()
    drawn = np.concatenate([memory.sample_sequences(64, 5, 2, overlap).chosen.copy() for _ in range(400)])
    expected = 25_600 * np.arange(1.0, 13.0) / 78
    counts = np.bincount(drawn, minlength=12)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("overlap", [None, 0, 2])
def test_the_first_and_the_last_step_are_learned_from(overlap):
    memory = one_episode(rule=pser.Uniform())
    learned = set()
    for _ in range(50):
        batch = memory.sample_sequences(16, 5, 3, overlap)
        learned |= set(batch.ids[batch.learn].tolist())
        assert (batch.learn.sum(axis=1) >= 1).all()
        assert (batch.ids == batch.chosen[:, None])[batch.learn].sum() == 16  # the chosen step is among them
    assert learned == set(range(12))


def test_every_place_of_a_window_that_fits_is_as_likely():
    memory = one_episode(rule=pser.Uniform())
    places = np.zeros((12, 12))
    for _ in range(600):
        batch = memory.sample_sequences(64, 5)
        np.add.at(places, (batch.chosen, batch.ids[:, 0]), 1)
    for chosen in range(12):
        possible = [s for s in range(8) if s <= chosen < s + 5]
        counts = places[chosen, possible]
        assert places[chosen].sum() == counts.sum()
        assert (np.abs(counts - counts.mean()) < 5 * np.sqrt(counts.mean())).all()


def test_a_window_on_the_grid_begins_at_multiples_of_its_stride():
    memory = one_episode()
    batch = memory.sample_sequences(200, 5, 0, overlap=2)
    assert set(batch.ids[:, 0].tolist()) == {0, 3, 6, 9}
    assert set(batch.mask.sum(axis=1)[batch.ids[:, 0] == 9].tolist()) == {3}


def test_windows_of_frames_are_given_back_bit_for_bit():
    memory = pser.ReplayMemory(50, pser.Frames((2,), stack=3), seed=0)
    stack, seen = np.zeros((3, 2), np.uint8), []
    for step in range(30):
        following = np.concatenate([stack[1:], np.full((1, 2), step + 1, np.uint8)])
        memory.add(stack, step, 0.0, following, step % 10 == 9, False)
        seen.append((stack, following))
        stack = following if step % 10 != 9 else np.full((3, 2), 100 + step, np.uint8)
    batch = memory.sample_sequences(20, 6, 2)
    for row in range(20):
        for column in np.flatnonzero(batch.mask[row]):
            now, after = seen[batch.ids[row, column]]
            np.testing.assert_array_equal(batch.observation[row, column], now)
            np.testing.assert_array_equal(batch.next_observation[row, column], after)
        assert not batch.observation[row, ~batch.mask[row]].any()


def test_each_step_takes_its_own_td_error():
    memory, other = one_episode(rule=pser.PSER()), one_episode(rule=pser.PSER())
    batch = memory.sample_sequences(3, 4, 2)
    other.sample_sequences(3, 4, 2)
    errors = np.random.default_rng(0).normal(size=batch.ids.shape)
    applied = memory.update_priorities(batch.ids, errors, mask=batch.learn)
    assert applied == batch.learn.sum()
    other.update_priorities(batch.ids[batch.learn], errors[batch.learn])
    np.testing.assert_array_equal(memory.priorities(np.arange(12)), other.priorities(np.arange(12)))


def test_rows_without_an_id_are_left_out():
    memory = one_episode(3)
    batch = memory.sample_sequences(1, 5)
    assert memory.update_priorities(batch.ids, np.array([[1.0, 2.0, 3.0, np.nan, np.inf]])) == 3
    assert memory.priorities([0, 1, 2]).tolist() == [1.0, 2.0, 3.0]


def test_all_steps_of_a_window_may_take_a_mixture_of_largest_and_mean():
    memory = one_episode(6, rule=pser.PER(eps=0.0))
    ids = np.array([[0, 1, 2], [3, 4, -1]])
    memory.update_priorities(ids, np.array([[1.0, -4.0, 1.0], [2.0, 0.0, 99.0]]), max_share=0.9)
    expected = [0.9 * 4 + 0.1 * 2] * 3 + [0.9 * 2 + 0.1 * 1] * 2 + [6.0]
    np.testing.assert_allclose(memory.priorities(np.arange(6)), expected)


def test_tensors_of_sequences_share_their_memory():
    torch = pytest.importorskip("torch")
    batch = one_episode().sample_sequences(4, 3, 1)
    tensors = batch.torch()
    assert tensors.observation.data_ptr() == batch.observation.ctypes.data
    assert tensors.ids is batch.ids
    assert tensors.learn.dtype == torch.bool
    assert batch.to(dtype=torch.float16).reward.dtype == torch.float16


def test_arrays_are_reused_unless_a_copy_is_asked_for():
    memory = one_episode()
    batch = memory.sample_sequences(4, 3)
    assert memory.sample_sequences(4, 3) is batch
    assert memory.sample_sequences(4, 3, copy=True) is not batch
    assert memory.sample_sequences(4, 2, 1) is batch  # the same shape


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((0, 5), "batch_size must be from 1"),
        ((4, 0), "length must be at least 1"),
        ((4, 2.5), "length must be at least 1"),
        ((4, 5, -1), "burn_in must be at least 0"),
        ((4, 5, 0, 5), "overlap must be None or from 0 to 4"),
        ((4, 5, 0, -1), "overlap must be None or from 0 to 4"),
        ((4, 5, 0, None, 2.0), "beta must be from 0 to 1"),
        ((10**6, 10**9), "a batch must have at most"),
    ],
)
def test_windows_that_make_no_sense_are_refused(arguments, rule):
    with pytest.raises(pser.PserError, match=rule):
        one_episode().sample_sequences(*arguments)


def test_an_empty_memory_has_no_sequences():
    with pytest.raises(pser.PserError, match="empty memory"):
        pser.ReplayMemory(10, pser.Array(())).sample_sequences(2, 3)


def test_updates_of_another_shape_are_refused():
    memory = one_episode()
    batch = memory.sample_sequences(2, 3)
    with pytest.raises(pser.PserError, match="one TD error for each step"):
        memory.update_priorities(batch.ids, np.zeros(6), mask=batch.learn)
    with pytest.raises(pser.PserError, match="max_share must be from 0 to 1"):
        memory.update_priorities(batch.ids, np.zeros((2, 3)), max_share=2.0)
