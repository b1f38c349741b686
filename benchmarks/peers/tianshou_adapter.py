"""Tianshou with this project's buffers, beside its own (row tianshou)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from tianshou.data import Batch, ReplayBuffer

import pser
from benchmarks.peer import Case, Scenario
from benchmarks.peers.tianshou import _batch
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, ETA, POOL, RHO
from benchmarks.workload import Workload
from pser.integrations.tianshou import PrioritizedReplayBuffer, PrioritizedVectorReplayBuffer

torch.set_num_threads(1)

PER = pser.PER(alpha=ALPHA, eps=EPS)


def _pser(window: int) -> pser.PSER:
    return pser.PSER(alpha=ALPHA, eps=EPS, eta=ETA, rho=RHO, window=window, decay_on_insert=False)


def _filled(load: Workload, rule: pser.Prioritization) -> PrioritizedReplayBuffer:
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
    buffer = PrioritizedReplayBuffer(load.capacity, rule, beta=BETA, seed=0)
    buffer.update_weight(buffer.update(source), load.fill_errors)
    return buffer


class TianshouAdapter:
    """The adapter as Tianshou drives it."""

    name = "tianshou + pser"
    distributions = ("tianshou", "pser", "torch")
    notes = ("η and the decay within `update_weight`. The `Batch` that `add` takes is built outside.",)

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        return {}

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        per, added = _filled(load, PER), _filled(load, _pser(5))
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

        def learn(buffer: PrioritizedReplayBuffer) -> Case:
            def step(i: int) -> None:
                _, slots = buffer.sample(BATCH)
                buffer.update_weight(slots, errors[i % POOL])

            return step

        return {
            "learn PER": learn(per),
            "learn PSER W=5": learn(_filled(load, _pser(5))),
            "learn PSER W=20": learn(_filled(load, _pser(20))),
            "sample": lambda i: per.sample(BATCH),
            "update": lambda i: per.update_weight(batches[i % POOL], errors[i % POOL]),
            "add": lambda i: added.add(steps[i % POOL]),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        buffer = PrioritizedVectorReplayBuffer(load.capacity, 64, _pser(5), beta=BETA, seed=0)
        steps = [_batch(step) for step in load.steps(environments=64)]
        for i in range(load.capacity // 64):
            buffer.add(steps[i % POOL])
        return {"add": lambda i: buffer.add(steps[i % POOL])}


PEER = TianshouAdapter()
