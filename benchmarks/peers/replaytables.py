"""ReplayTables-andnp: `PrioritizedReplay`, and its own `PrioritizedSequenceReplay`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ReplayTables.interface import Timestep
from ReplayTables.PER import PERConfig, PrioritizedReplay
from ReplayTables.PSER import PrioritizedSequenceReplay, PSERConfig

from benchmarks.peer import Case, Scenario
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, GAMMA, POOL, RHO
from benchmarks.workload import Workload


def _fill(buffer: Any, load: Workload) -> Any:
    """Fill through `add_step`; a timestep carries the reward of the step before it."""
    rows = load.transitions
    masses = (load.fill_errors + EPS) ** ALPHA  # `extra["priority"]` is stored as it is
    stored = position = 0
    reward = None
    while stored < load.capacity:
        i = position % load.capacity
        extra = {"priority": masses[i]}
        out = buffer.add_step(
            Timestep(
                x=rows.observation[i], a=rows.action[i], r=reward, gamma=GAMMA, terminal=False, extra=extra
            )
        )
        reward = rows.reward[i]
        if rows.terminated[i] or rows.truncated[i]:
            out += buffer.add_step(Timestep(x=None, a=None, r=reward, gamma=0.0, terminal=True))
            reward = None
        stored += len(out)
        position += 1
    return buffer


def _per(load: Workload) -> Any:
    config = PERConfig(priority_exponent=ALPHA)
    return _fill(PrioritizedReplay(load.capacity, 1, np.random.default_rng(0), config), load)


def _pser(load: Workload, window: int) -> Any:
    config = PSERConfig(priority_exponent=ALPHA, trace_decay=RHO**ALPHA, trace_depth=window, combinator="max")
    return _fill(PrioritizedSequenceReplay(load.capacity, 1, np.random.default_rng(0), config), load)


def _learn(buffer: Any, errors: np.ndarray) -> Case:
    def learn(i: int) -> None:
        batch = buffer.sample(BATCH)
        weight = buffer.isr_weights(batch.trans_id) ** BETA
        weight / np.max(weight)
        buffer.update_priorities(batch, errors[i % POOL])

    return learn


class ReplayTables:
    """ReplayTables as its users drive it."""

    name = "ReplayTables"
    distributions = ("ReplayTables-andnp", "numba")
    notes = (
        "Its own PSER, with MAX: no η, and a truncated episode is no boundary (it is given as "
        "terminal here).",
        "Each PSER update converts its set of all terminal positions anew, so its time grows with the number "
        "of episodes in memory.",
        "No call that samples indices without the transitions.",
        "One stream only: a step of 64 environments is 64 `add_step` calls.",
        "Frames: stacks are stored whole, each once (the next observation of a step is the "
        "observation of the following).",
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
        self._per = per = _per(load)
        errors = load.td_errors
        batches = [per.sample(BATCH) for _ in range(POOL)]

        def sample(i: int) -> None:
            batch = per.sample(BATCH)
            weight = per.isr_weights(batch.trans_id) ** BETA
            weight / np.max(weight)

        return {
            "learn PER": _learn(per, errors),
            "learn PSER W=5": _learn(_pser(load, 5), errors),
            "learn PSER W=20": _learn(_pser(load, 20), errors),
            "sample": sample,
            "update": lambda i: per.update_priorities(batches[i % POOL], errors[i % POOL]),
            "add": _add(per, load, environments=1),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        # Filling takes long, and there is one stream anyway: the memory single steps are added to will do.
        return {"add": _add(self._per, load, environments=64)}

    def _atari(self, load: Workload) -> Mapping[str, Case]:
        config = PERConfig(priority_exponent=ALPHA)
        buffer = PrioritizedReplay(load.capacity, 1, np.random.default_rng(0), config)
        masses = (load.fill_errors + EPS) ** ALPHA
        reward = None
        for step, mass in zip(load.frame_steps(), masses, strict=True):
            extra = {"priority": mass}
            buffer.add_step(
                Timestep(
                    x=step.observation, a=step.action, r=reward, gamma=GAMMA, terminal=False, extra=extra
                )
            )
            reward = step.reward
            if step.terminated or step.truncated:
                buffer.add_step(Timestep(x=None, a=None, r=reward, gamma=0.0, terminal=True))
                reward = None

        def sample(i: int) -> None:
            batch = buffer.sample(BATCH)
            weight = buffer.isr_weights(batch.trans_id) ** BETA
            weight / np.max(weight)

        return {"sample": sample}


def _add(buffer: Any, load: Workload, environments: int) -> Case:
    steps = [
        [
            Timestep(x=o, a=a, r=r, gamma=GAMMA, terminal=False)
            for o, a, r in zip(step.observation, step.action, step.reward, strict=True)
        ]
        for step in load.steps(environments)
    ]

    def add(i: int) -> None:
        for timestep in steps[i % POOL]:
            buffer.add_step(timestep)

    return add


PEER = ReplayTables()
