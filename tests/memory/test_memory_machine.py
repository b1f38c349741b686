"""A Hypothesis state machine: any sequence of calls leaves a `ReplayMemory` equal to the model."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import pser
from model import MemoryModel
from pser.errors import PserError
from strategies import any_rules, as_prioritization, assert_valid_draw, given_priorities, td_errors

from .games import ENDS, PADDINGS, FrameGame, MemoryDriver

ENDINGS = st.sampled_from(["", "", "", "", "", *ENDS[1:]])


class DictGame:
    """Frames beside plain arrays that do not continue from step to step."""

    def __init__(self, game, keep_frames):
        self.game, self.keep_frames = game, keep_frames
        self.rng = np.random.default_rng(7)

    def reset(self):
        return self.game.reset()

    @property
    def observation(self):
        return self.game.observation

    @observation.setter
    def observation(self, value):
        self.game.observation = value

    def step(self, end):
        before, after, terminated, truncated = self.game.step(end)

        def dress(stack):
            values = {
                "speed": self.rng.normal(size=2).astype(np.float32),
                "n": np.int64(self.rng.integers(2**40)),
            }
            if self.keep_frames:
                values["screen"] = stack
            return values

        return dress(before), dress(after), terminated, truncated


class MemoryMachine(RuleBasedStateMachine):
    """Random steps of several environments, cuts, overwrites, samples, updates, stale ids, save and load."""

    kind = "array"

    @initialize(
        rules=any_rules,
        capacity=st.one_of(st.integers(1, 30), st.sampled_from([48, 60])),
        num_envs=st.sampled_from([1, 3]),
        n_step=st.sampled_from([1, 3]),
        gamma=st.sampled_from([0.5, 0.99, 1.0]),
        stack=st.integers(1, 4),
        padding=st.sampled_from(PADDINGS),
        seed=st.integers(0, 99),
    )
    def start(self, rules, capacity, num_envs, n_step, gamma, stack, padding, seed):
        games = [FrameGame((2,), stack, padding, seed=e) for e in range(num_envs)]
        observation = {
            "array": pser.Array((stack, 2), np.uint8),
            "frames": pser.Frames((2,), stack=stack),
            "compressed frames": pser.Frames((2,), stack=stack, compress=True),
            "dict": {"speed": pser.Array((2,), np.float32), "n": pser.Array((), np.int64)},
            "dict of frames": {
                "speed": pser.Array((2,), np.float32),
                "n": pser.Array((), np.int64),
                "screen": pser.Frames((2,), stack=stack),
            },
        }[self.kind]
        if self.kind.startswith("dict"):
            games = [DictGame(game, "frames" in self.kind) for game in games]
        memory = pser.ReplayMemory(
            capacity=capacity,
            observation=observation,
            action=pser.Array((), np.int64),
            num_envs=num_envs,
            prioritization=as_prioritization(rules),
            n_step=n_step,
            gamma=gamma,
            seed=seed,
        )
        self.driver = MemoryDriver(memory, MemoryModel(capacity, rules, num_envs, n_step, gamma), games)
        self.rng = np.random.default_rng(seed)
        self.steps_since_saved = 0

    @property
    def index(self):
        return self.driver.model.index

    def step(self, data, stream, count):
        how = data.draw(st.sampled_from(["MaxPrio", "priority", "td_error"]))
        given = {}
        if how == "priority":
            given["priority"] = data.draw(st.lists(given_priorities, min_size=count, max_size=count))
        elif how == "td_error":
            given["td_error"] = data.draw(st.lists(td_errors, min_size=count, max_size=count))
        self.driver.step([data.draw(ENDINGS) for _ in range(count)], stream=stream, **given)

    @rule(data=st.data(), repeats=st.integers(1, 4))
    def step_in_lockstep(self, data, repeats):
        for _ in range(repeats):
            self.step(data, None, len(self.driver.games))

    @rule(data=st.data())
    def step_named_streams(self, data):
        last = len(self.driver.games) - 1
        stream = data.draw(st.lists(st.integers(0, last), min_size=1, max_size=last + 1, unique=True))
        self.step(data, stream, len(stream))

    @rule(data=st.data())
    def end_episodes(self, data):
        last = len(self.driver.games) - 1
        stream = data.draw(st.none() | st.lists(st.integers(0, last), min_size=1, unique=True))
        self.driver.end_episodes(stream)

    @precondition(lambda self: len(self.index) > 0)
    @rule(k=st.integers(1, 40), beta=st.sampled_from([0.0, 0.5, 1.0]), copy=st.booleans(), data=st.data())
    def sample_and_maybe_update(self, k, beta, copy, data):
        batch = self.driver.memory.sample(k, beta=beta, copy=copy)
        self.driver.compare_batch(batch, beta)
        assert_valid_draw(self.index, batch.ids.tolist(), self.rng.random(k).tolist())
        if data.draw(st.booleans()):
            few = data.draw(st.lists(td_errors, min_size=1, max_size=4))
            td = [few[j % len(few)] * (1 + j) for j in range(k)]
            ids = batch.ids.tolist()
            assert self.driver.memory.update_priorities(batch.ids, td) == self.index.update(ids, td)

    @precondition(lambda self: self.index.next_id > 0)
    @rule(data=st.data())
    def update_any_id_ever_written(self, data):
        oldest = max(0, self.index.oldest_id - 5)
        rows = data.draw(
            st.lists(st.tuples(st.integers(oldest, self.index.next_id - 1), td_errors), max_size=12)
        )
        ids, td = np.array([i for i, _ in rows], np.int64), [d for _, d in rows]
        assert self.driver.memory.update_priorities(ids, td) == self.index.update(ids.tolist(), td)

    @precondition(lambda self: self.index.next_id > 0)
    @rule(bad=st.sampled_from([float("nan"), float("inf"), 1e101]))
    def bad_update_changes_nothing(self, bad):
        newest = self.index.next_id - 1
        with pytest.raises(PserError):
            self.driver.memory.update_priorities([newest, newest], [5.0, bad])
        with pytest.raises(PserError):
            self.driver.memory.update_priorities([newest, newest + 1], [5.0, 5.0])

    @precondition(lambda self: self.steps_since_saved > 3)  # else half of all steps would be this one
    @rule()
    def save_and_load(self):
        self.steps_since_saved = 0
        with tempfile.TemporaryDirectory() as folder:
            self.driver.memory.save(Path(folder) / "memory")
            self.driver.memory = pser.ReplayMemory.load(Path(folder) / "memory")

    @invariant()
    def equals_the_model(self):
        if hasattr(self, "driver"):
            self.steps_since_saved += 1
            self.driver.memory.check_invariants()
            assert len(self.driver.memory) == len(self.index)
            assert self.driver.memory.max_priority == pytest.approx(self.index.max_priority, rel=1e-12)
            if len(self.index):
                self.driver.compare_priorities()


class FramesMachine(MemoryMachine):
    kind = "frames"


class CompressedFramesMachine(MemoryMachine):
    kind = "compressed frames"


class DictMachine(MemoryMachine):
    kind = "dict"


class DictOfFramesMachine(MemoryMachine):
    kind = "dict of frames"


TestArray = MemoryMachine.TestCase
TestFrames = FramesMachine.TestCase
TestCompressedFrames = CompressedFramesMachine.TestCase
TestDict = DictMachine.TestCase
TestDictOfFrames = DictOfFramesMachine.TestCase
