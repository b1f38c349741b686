"""cpprb: `PrioritizedReplayBuffer`."""

from __future__ import annotations

from collections.abc import Mapping

import cpprb
import numpy as np

from benchmarks.peer import Case, Scenario
from benchmarks.peers._shadow import ShadowPriorities
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, FRAME, POOL, STACK
from benchmarks.workload import Transitions, Workload

SMALL = {
    "obs": {"shape": 4, "dtype": np.float32},
    "act": {"dtype": np.int64},
    "rew": {"dtype": np.float32},
    "next_obs": {"shape": 4, "dtype": np.float32},
    "done": {"dtype": np.bool_},
}


def _keywords(rows: Transitions) -> dict[str, np.ndarray]:
    return {
        "obs": rows.observation,
        "act": rows.action,
        "rew": rows.reward,
        "next_obs": rows.next_observation,
        "done": rows.terminated,
    }


def _filled(load: Workload) -> cpprb.PrioritizedReplayBuffer:
    buffer = cpprb.PrioritizedReplayBuffer(load.capacity, SMALL, alpha=ALPHA, eps=EPS)
    buffer.add(priorities=load.fill_errors, **_keywords(load.transitions))
    return buffer


class Cpprb:
    """cpprb as its users drive it."""

    name = "cpprb"
    distributions = ("cpprb",)
    notes = (
        "No PSER and no way to read a stored priority: the user's own copy of the priorities (NumPy) "
        "gives η and the decay, and all priorities are written in one `update_priorities` call.",
        "No call that samples indices without the transitions.",
        "A step of 64 environments is one `add` of 64 rows; its rows have one `done`, not "
        "`terminated` and `truncated`.",
        'Frames: `stack_compress="obs"`, `next_of="obs"`, stack on the last axis, as it requires.',
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        if scenario == "atari":
            return self._atari(load)
        return {}

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        per, added = _filled(load), _filled(load)
        errors, batches = load.td_errors, load.batches
        steps = [
            {key: value[0] for key, value in _keywords(step).items()} for step in load.steps(environments=1)
        ]

        def learn_per(i: int) -> None:
            batch = per.sample(BATCH, beta=BETA)
            per.update_priorities(batch["indexes"], np.abs(errors[i % POOL]))

        def learn_pser(window: int) -> Case:
            buffer, shadow = _filled(load), ShadowPriorities(load, window)

            def learn(i: int) -> None:
                batch = buffer.sample(BATCH, beta=BETA)
                buffer.update_priorities(
                    *shadow.update(batch["indexes"].astype(np.int64), np.abs(errors[i % POOL]))
                )

            return learn

        return {
            "learn PER": learn_per,
            "learn PSER W=5": learn_pser(5),
            "learn PSER W=20": learn_pser(20),
            "sample": lambda i: per.sample(BATCH, beta=BETA),
            "update": lambda i: per.update_priorities(batches[i % POOL], np.abs(errors[i % POOL])),
            "add": lambda i: added.add(**steps[i % POOL]),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        buffer = _filled(load)
        steps = [_keywords(step) for step in load.steps(environments=64)]
        return {"add": lambda i: buffer.add(**steps[i % POOL])}

    def _atari(self, load: Workload) -> Mapping[str, Case]:
        fields = {
            "obs": {"shape": (*FRAME, STACK), "dtype": np.uint8},
            "act": {"dtype": np.int64},
            "rew": {"dtype": np.float32},
            "done": {"dtype": np.bool_},
        }
        buffer = cpprb.PrioritizedReplayBuffer(
            load.capacity, fields, alpha=ALPHA, eps=EPS, next_of="obs", stack_compress="obs"
        )
        for step, error in zip(load.frame_steps(), load.fill_errors, strict=True):
            buffer.add(
                obs=np.moveaxis(step.observation, 0, -1),
                act=step.action,
                rew=step.reward,
                next_obs=np.moveaxis(step.next_observation, 0, -1),
                done=step.terminated,
                priorities=error,
            )
            if step.terminated or step.truncated:
                buffer.on_episode_end()
        return {"sample": lambda i: buffer.sample(BATCH, beta=BETA)}


PEER = Cpprb()
