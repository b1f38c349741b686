"""Tianshou: `PrioritizedReplayBuffer` and its vector form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.data import Batch, PrioritizedReplayBuffer, PrioritizedVectorReplayBuffer, ReplayBuffer

from benchmarks.peer import Case, Scenario
from benchmarks.settings import ALPHA, BATCH, BETA, ETA, POOL, RHO, STACK
from benchmarks.workload import Transitions, Workload

torch.set_num_threads(1)


def _batch(rows: Transitions) -> Batch:
    return Batch(
        obs=rows.observation,
        act=rows.action,
        rew=rows.reward,
        terminated=rows.terminated,
        truncated=rows.truncated,
        obs_next=rows.next_observation,
        info={},
    )


@cache
def _filled(load: Workload, use: str) -> PrioritizedReplayBuffer:
    """A full buffer; cases of the same `use` share one, with and without its transitions."""
    rows = load.transitions
    source = ReplayBuffer.from_data(
        obs=rows.observation,
        act=rows.action,
        rew=rows.reward.astype(float),
        terminated=rows.terminated,
        truncated=rows.truncated,
        done=rows.terminated | rows.truncated,
        obs_next=rows.next_observation,
    )
    buffer = PrioritizedReplayBuffer(load.capacity, alpha=ALPHA, beta=BETA)
    buffer.update_weight(buffer.update(source), load.fill_errors)
    return buffer


class Decay:
    """PSER on a tianshou buffer: `prev` finds the predecessors, `weight` holds p^α and can be read."""

    def __init__(self, buffer: PrioritizedReplayBuffer, window: int) -> None:
        self._buffer = buffer
        self._window = window
        # Rows: predecessors, farthest first, then the batch itself. Where two rows name one transition
        # (`prev` stays at an episode's start) the later row stands, and it is the stronger.
        self._decay = RHO ** np.arange(window, -1, -1)[:, None]
        self._keep = np.array([1.0] * window + [ETA])[:, None]

    def update(self, index: NDArray[np.int64], td_errors: NDArray[np.float32]) -> None:
        """Own priorities with η and the predecessors', written in one call."""
        buffer = self._buffer
        rows = np.empty((self._window + 1, len(index)), np.int64)
        rows[-1] = index
        for row in range(self._window - 1, -1, -1):
            rows[row] = index = buffer.prev(index)
        old = buffer.weight[rows] ** (1 / ALPHA)
        new = np.maximum(self._decay * np.abs(td_errors), self._keep * old)
        buffer.update_weight(rows.ravel(), new.ravel())


class Tianshou:
    """Tianshou as its users drive it."""

    name = "tianshou"
    distributions = ("tianshou", "torch", "numba")
    notes = (
        "No PSER: `prev` walks back over the window, `weight` gives the stored masses, and one "
        "`update_weight` call writes the larger values.",
        "Priorities alone: `sample_indices`, `get_weight`, `update_weight`, without the batch of "
        "transitions.",
        "A step of 64 environments goes into a `PrioritizedVectorReplayBuffer`. The `Batch` that "
        "`add` takes is built outside the timed part.",
        "Frames: `stack_num=4, ignore_obs_next=True, save_only_last_obs=True`, as in its own Atari "
        "examples: at the end of a truncated episode the next observation is not the true one.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "index":
            return self._index(load)
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        if scenario == "atari":
            return self._atari(load)
        return {}

    def _index(self, load: Workload) -> Mapping[str, Case]:
        per, errors, batches = _filled(load, "PER"), load.td_errors, load.batches

        def sample(i: int) -> None:
            weight = per.get_weight(per.sample_indices(BATCH))
            weight / np.max(weight)

        def learn_per(i: int) -> None:
            index = per.sample_indices(BATCH)
            weight = per.get_weight(index)
            weight / np.max(weight)
            per.update_weight(index, errors[i % POOL])

        def learn_pser(window: int) -> Case:
            buffer = _filled(load, f"W={window}")
            decay = Decay(buffer, window)

            def learn(i: int) -> None:
                index = buffer.sample_indices(BATCH)
                weight = buffer.get_weight(index)
                weight / np.max(weight)
                decay.update(index, errors[i % POOL])

            return learn

        return {
            "learn PER": learn_per,
            "learn PSER W=5": learn_pser(5),
            "learn PSER W=20": learn_pser(20),
            "sample": sample,
            "update": lambda i: per.update_weight(batches[i % POOL], errors[i % POOL]),
        }

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        per, added = _filled(load, "PER"), _filled(load, "add")
        errors, batches = load.td_errors, load.batches
        steps = [
            Batch(
                obs=step.observation[0],
                act=step.action[0],
                rew=step.reward[0],
                terminated=step.terminated[0],
                truncated=step.truncated[0],
                obs_next=step.next_observation[0],
            )
            for step in load.steps(environments=1)
        ]

        def learn_per(i: int) -> None:
            _, index = per.sample(BATCH)
            per.update_weight(index, errors[i % POOL])

        def learn_pser(window: int) -> Case:
            buffer = _filled(load, f"W={window}")
            decay = Decay(buffer, window)

            def learn(i: int) -> None:
                _, index = buffer.sample(BATCH)
                decay.update(index, errors[i % POOL])

            return learn

        return {
            "learn PER": learn_per,
            "learn PSER W=5": learn_pser(5),
            "learn PSER W=20": learn_pser(20),
            "sample": lambda i: per.sample(BATCH),
            "update": lambda i: per.update_weight(batches[i % POOL], errors[i % POOL]),
            "add": lambda i: added.add(steps[i % POOL]),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        buffer = PrioritizedVectorReplayBuffer(load.capacity, 64, alpha=ALPHA, beta=BETA)
        steps = [_batch(step) for step in load.steps(environments=64)]
        for i in range(load.capacity // 64):
            buffer.add(steps[i % POOL])
        return {"add": lambda i: buffer.add(steps[i % POOL])}

    def _atari(self, load: Workload) -> Mapping[str, Case]:
        buffer = PrioritizedReplayBuffer(
            load.capacity,
            alpha=ALPHA,
            beta=BETA,
            stack_num=STACK,
            ignore_obs_next=True,
            save_only_last_obs=True,
        )
        for step in load.frame_steps():
            buffer.add(
                Batch(
                    obs=step.observation,
                    act=step.action,
                    rew=step.reward,
                    terminated=step.terminated,
                    truncated=step.truncated,
                    obs_next=step.next_observation,
                )
            )
        buffer.update_weight(np.arange(load.capacity), load.fill_errors)
        return {"sample": lambda i: buffer.sample(BATCH)}


PEER = Tianshou()
