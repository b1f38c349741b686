"""Toy games for the tests: every frame is different, so that a wrong frame cannot pass for the right one."""

import numpy as np

PADDINGS = ("repeat", "zeros", "distinct")
ENDS = ("", "terminated", "truncated", "life", "life and jump")


class FrameGame:
    """One environment that gives stacks of frames, padded after a reset in one of the usual ways."""

    def __init__(self, shape=(2, 3), stack=4, padding="repeat", seed=0, dtype=np.uint8):
        self.shape, self.stack, self.padding, self.dtype = tuple(shape), stack, padding, np.dtype(dtype)
        self.rng = np.random.default_rng(seed)
        self.observation = self.reset()

    def frame(self):
        """A random frame, never all zeros."""
        if self.dtype.kind == "f":
            return (self.rng.random(self.shape) + 1.0).astype(self.dtype)
        return self.rng.integers(1, 256, self.shape).astype(self.dtype)

    def reset(self):
        """The first observation of an episode."""
        if self.padding == "repeat":
            return np.stack([self.frame()] * self.stack)
        if self.padding == "zeros":
            empty = np.zeros(self.shape, self.dtype)
            return np.stack([empty] * (self.stack - 1) + [self.frame()])
        return np.stack([self.frame() for _ in range(self.stack)])

    def step(self, end=""):
        """One step that ends as told: (observation, next observation, terminated, truncated).

        A lost life ends the learning episode but not the run of frames: the next observation goes on from it
        ("life"), or further on where the game has moved unseen ("life and jump").
        """
        observation = self.observation
        following = np.concatenate([observation[1:], self.frame()[None]])
        if end in ("terminated", "truncated"):
            self.observation = self.reset()
        elif end == "life and jump":
            self.observation = np.concatenate([following[1:], self.frame()[None]])
        else:
            self.observation = following
        return observation, following, end in ("terminated", "life", "life and jump"), end == "truncated"


class MemoryDriver:
    """Drives a memory and its model with the same steps of toy games, and compares all that is sampled."""

    def __init__(self, memory, model, games):
        self.memory, self.model, self.games = memory, model, games
        self.time = 0

    def step(self, ends, stream=None, priority=None, td_error=None):
        """One step of the environments in `stream` (all of them by default)."""
        streams = range(len(self.games)) if stream is None else stream
        rows = []
        for e, end in zip(streams, ends, strict=True):
            observation, following, terminated, truncated = self.games[e].step(end)
            self.time += 1
            rows.append((observation, self.time, float(self.time % 9), following, terminated, truncated))
        columns = [stack_rows([row[c] for row in rows]) for c in range(6)]
        ids = self.memory.add(*columns, priority, td_error=td_error, stream=stream)
        expected = []
        for n, (e, row) in enumerate(zip(streams, rows, strict=True)):
            given = None
            if priority is not None:
                given = priority[n]
            elif td_error is not None:
                given = abs(td_error[n]) + self.model.rules.eps
            expected += self.model.add_row(e, *row, given=given)
        assert ids.tolist() == expected
        self.follow_retention()
        return expected

    def end_episodes(self, stream=None):
        """Cut the running episodes; the games start anew."""
        ids = self.memory.end_episodes(stream=stream)
        expected = []
        for e in range(len(self.games)) if stream is None else stream:
            expected += self.model.end_episode(e)
            self.games[e].observation = self.games[e].reset()
        assert ids.tolist() == expected
        self.follow_retention()
        return expected

    def follow_retention(self):
        """Frames of very short episodes may push a few transitions out early: the memory says how many."""
        assert len(self.memory) <= len(self.model.index)
        self.model.index.evict_before(self.model.index.next_id - len(self.memory))

    def compare_priorities(self, rel=1e-12):
        """Every retained priority equals the model's."""
        ids = self.model.index.ids
        got = self.memory.priorities(np.asarray(ids, np.int64))
        np.testing.assert_allclose(got, [self.model.index.priority(i) for i in ids], rtol=rel, atol=0)

    def compare_batch(self, batch, beta=0.5):
        """Every row of a batch equals what was given, bit for bit."""
        index = self.model.index
        probabilities = index.probabilities()
        ids = batch.ids.tolist()
        assert set(ids) <= set(index.ids)
        for row, transition in enumerate(ids):
            wanted = self.model.transitions[transition]
            assert_same_observation(batch.observation, row, wanted.observation)
            assert_same_observation(batch.next_observation, row, wanted.next_observation)
            assert np.asarray(batch.action)[row] == wanted.action
            np.testing.assert_allclose(batch.reward[row], wanted.reward, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(batch.discount[row], wanted.discount, rtol=1e-6, atol=0)
            assert bool(batch.terminated[row]) == wanted.terminated
        np.testing.assert_allclose(batch.probabilities, [probabilities[i] for i in ids], rtol=1e-12, atol=0)
        np.testing.assert_allclose(batch.weights, index.weights(ids, beta), rtol=1e-6, atol=1e-37)

    def compare_everything(self):
        """Sample until every transition that can be drawn was drawn and compared."""
        self.memory.check_invariants()
        self.compare_priorities()
        wanted = {i for i, p in self.model.index.probabilities().items() if p > 1e-3}
        for _ in range(300):
            batch = self.memory.sample(2 * len(self.memory), beta=0.5)
            self.compare_batch(batch)
            wanted -= set(batch.ids.tolist())
            if not wanted:
                return
        raise AssertionError(f"never sampled: {wanted}")


def stack_rows(values):
    """A leading axis over rows; dict observations stay dicts."""
    if isinstance(values[0], dict):
        return {name: np.stack([v[name] for v in values]) for name in values[0]}
    return np.stack([np.asarray(v) for v in values])


def assert_same_observation(batch_observation, row, wanted):
    """Bit for bit, dtype included."""
    if isinstance(wanted, dict):
        assert set(batch_observation) == set(wanted)
        for name, value in wanted.items():
            assert_same_observation(batch_observation[name], row, value)
        return
    got = batch_observation[row]
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.tobytes() == wanted.tobytes()
