"""TorchRL with this project's sampler, beside its own `PrioritizedSampler` (row torchrl)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

import pser
from benchmarks.peer import Case, Scenario
from benchmarks.peers.torchrl import _tensordict
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, ETA, POOL, RHO
from benchmarks.workload import Workload
from pser.integrations.torchrl import PSERSampler

torch.set_num_threads(1)

PER = pser.PER(alpha=ALPHA, eps=EPS)


def _pser(window: int) -> pser.PSER:
    return pser.PSER(alpha=ALPHA, eps=EPS, eta=ETA, rho=RHO, window=window, decay_on_insert=False)


def _filled(load: Workload, rule: pser.Prioritization) -> TensorDictReplayBuffer:
    sampler = PSERSampler(rule, td_errors="plain", beta=BETA, seed=0)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(load.capacity), sampler=sampler, batch_size=BATCH
    )
    data = _tensordict(load.transitions)
    data["td_error"] = torch.as_tensor(load.fill_errors)
    buffer.extend(data)
    return buffer


class TorchRLAdapter:
    """The adapter as TorchRL's users drive it."""

    name = "torchrl + pser"
    distributions = ("torchrl", "tensordict", "pser", "torch")
    notes = (
        "`PSERSampler` in a `TensorDictReplayBuffer`; η and the decay within `update_priority`.",
        "After an addition the next sample reads the new rows' `done` flags from the storage.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            buffer = _filled(load, _pser(5))
            steps = [_tensordict(step) for step in load.steps(environments=64)]
            return {"add": lambda i: buffer.extend(steps[i % POOL])}
        return {}

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        errors = [torch.as_tensor(row) for row in load.td_errors]
        batches = [torch.as_tensor(row) for row in load.batches]
        per, added = _filled(load, PER), _filled(load, _pser(5))
        steps = [_tensordict(step)[0] for step in load.steps(environments=1)]

        def learn(buffer: TensorDictReplayBuffer) -> Case:
            def step(i: int) -> None:
                _, info = buffer.sample(return_info=True)
                buffer.update_priority(info["index"], errors[i % POOL])

            return step

        return {
            "learn PER": learn(per),
            "learn PSER W=5": learn(_filled(load, _pser(5))),
            "learn PSER W=20": learn(_filled(load, _pser(20))),
            "sample": lambda i: per.sample(return_info=True),
            "update": lambda i: per.update_priority(batches[i % POOL], errors[i % POOL]),
            "add": lambda i: added.add(steps[i % POOL]),
        }


PEER = TorchRLAdapter()
