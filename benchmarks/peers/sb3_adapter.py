"""stable-baselines3 with this project's buffer: what `pser.integrations.sb3.DQN` does around its network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from gymnasium import spaces

import pser
from benchmarks import sb3_models
from benchmarks.peer import Case, Scenario
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, ETA, POOL, RHO
from benchmarks.workload import Workload
from pser.integrations.sb3 import PrioritizedReplayBuffer

torch.set_num_threads(1)

PER = pser.PER(alpha=ALPHA, eps=EPS)


def _pser(window: int) -> pser.PSER:
    return pser.PSER(alpha=ALPHA, eps=EPS, eta=ETA, rho=RHO, window=window, decay_on_insert=False)


def _empty(capacity: int, rule: pser.Prioritization, n_envs: int = 1) -> PrioritizedReplayBuffer:
    observation = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    return PrioritizedReplayBuffer(
        capacity, observation, spaces.Discrete(2), "cpu", n_envs, prioritization=rule, beta=BETA, seed=0
    )


def _filled(load: Workload, rule: pser.Prioritization) -> PrioritizedReplayBuffer:
    """Filled array by array: a million calls of `add` would measure patience."""
    buffer, rows = _empty(load.capacity, rule), load.transitions
    buffer.observations[:, 0], buffer.next_observations[:, 0] = rows.observation, rows.next_observation
    buffer.actions[:, 0, 0], buffer.rewards[:, 0] = rows.action, rows.reward
    buffer.dones[:, 0] = rows.terminated | rows.truncated
    buffer.timeouts[:, 0], buffer.full = rows.truncated, True
    for part in np.split(np.arange(load.capacity), 100):
        stream = np.zeros(len(part), np.int64)
        buffer.index.append(load.starts[part], load.fill_errors[part] + EPS, stream=stream)
    return buffer


class SB3Adapter:
    """The adapter as SB3's DQN drives it."""

    name = "stable-baselines3 + pser"
    distributions = ("stable-baselines3", "pser", "torch")
    notes = (
        "stable-baselines3 has no prioritized buffer of its own. `sample` gives SB3's tensors; TD errors are "
        "tensors too.",
        "Training: a gradient step with the default batch and network of each class.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        return self._train(load) if scenario == "train" else {}

    def _train(self, load: Workload) -> Mapping[str, Case]:
        cases: dict[str, Case] = {}
        for name, batch in sb3_models.BATCHES.items():
            for label, rule in ((name, _pser(5)), (f"{name} stock", None)):
                model = sb3_models.model(name, load, rule)
                cases[label] = lambda i, model=model, batch=batch: model.train(1, batch)  # type: ignore[misc]
        return cases

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        errors = [torch.as_tensor(row).reshape(-1, 1) for row in load.td_errors]
        per, added, batches = _filled(load, PER), _filled(load, _pser(5)), load.batches
        steps, infos = load.steps(environments=1), [{"TimeLimit.truncated": False}]

        def learn(buffer: PrioritizedReplayBuffer) -> Case:
            def step(i: int) -> None:
                batch = buffer.sample(BATCH)
                buffer.update_priorities(batch.ids, errors[i % POOL])

            return step

        def add(i: int) -> None:
            step = steps[i % POOL]
            ends = step.terminated | step.truncated
            added.add(step.observation, step.next_observation, step.action, step.reward, ends, infos)

        return {
            "learn PER": learn(per),
            "learn PSER W=5": learn(_filled(load, _pser(5))),
            "learn PSER W=20": learn(_filled(load, _pser(20))),
            "sample": lambda i: per.sample(BATCH),
            "update": lambda i: per.update_priorities(batches[i % POOL], errors[i % POOL]),
            "add": add,
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        buffer, infos = _empty(load.capacity, _pser(5), n_envs=64), [{"TimeLimit.truncated": False}] * 64
        steps = load.steps(environments=64)

        def add(i: int) -> None:
            step = steps[i % POOL]
            ends = step.terminated | step.truncated
            buffer.add(step.observation, step.next_observation, step.action, step.reward, ends, infos)

        for i in range(load.capacity // 64):
            add(i)
        return {"add": add}


PEER = SB3Adapter()
