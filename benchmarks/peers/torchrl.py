"""TorchRL: `PrioritizedReplayBuffer` over a `LazyTensorStorage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, PrioritizedReplayBuffer, TensorDictReplayBuffer
from torchrl.data.replay_buffers import PrioritizedSampler, PrioritizedSliceSampler, SliceSampler

from benchmarks.peer import Case, Scenario
from benchmarks.settings import ALPHA, BATCH, BETA, EPS, ETA, POOL, RHO, SEQUENCE_STEPS, SEQUENCES
from benchmarks.workload import FrameStep, Transitions, Workload

torch.set_num_threads(1)


def _tensordict(rows: Transitions) -> TensorDict:
    """The layout TorchRL's collectors give."""
    tensors = Transitions(*(torch.as_tensor(np.ascontiguousarray(column)) for column in rows))
    return TensorDict(
        {
            "observation": tensors.observation,
            "action": tensors.action,
            "next": {
                "observation": tensors.next_observation,
                "reward": tensors.reward,
                "terminated": tensors.terminated,
                "truncated": tensors.truncated,
                "done": tensors.terminated | tensors.truncated,
            },
        },
        batch_size=[len(rows.action)],
    )


def _empty(capacity: int) -> PrioritizedReplayBuffer:
    return PrioritizedReplayBuffer(
        alpha=ALPHA, beta=BETA, eps=EPS, storage=LazyTensorStorage(capacity), batch_size=BATCH
    )


def _filled(load: Workload) -> PrioritizedReplayBuffer:
    buffer = _empty(load.capacity)
    buffer.extend(_tensordict(load.transitions))
    buffer.update_priority(
        torch.arange(load.capacity), torch.as_tensor(load.fill_errors, dtype=torch.float32)
    )
    return buffer


class Decay:
    """PSER's priorities for TorchRL, whose trees have no public reader: the user's own copy, as tensors."""

    def __init__(self, load: Workload, window: int) -> None:
        self._capacity = load.capacity
        self._priority = torch.as_tensor(load.fill_errors, dtype=torch.float32).clone()
        self._depth = torch.as_tensor(load.depth)
        # Farthest first: where the episode's start cuts a window short, the strongest decay is written last.
        self._lags = torch.arange(window, 0, -1)[:, None]
        self._decay = RHO**self._lags

    def update(self, index: torch.Tensor, fresh: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions and priorities to write."""
        priority = self._priority
        own = torch.maximum(fresh, ETA * priority[index])
        priority[index] = own
        targets = ((index - torch.minimum(self._lags, self._depth[index])) % self._capacity).ravel()
        decayed = torch.maximum((self._decay * fresh).ravel(), priority[targets])
        priority[targets] = decayed
        return torch.cat([index, targets]), torch.cat([own, decayed])


class TorchRL:
    """TorchRL as its users drive it."""

    name = "torchrl"
    distributions = ("torchrl", "tensordict", "torch")
    notes = (
        "Its own environment: none of its published wheels loads its compiled part with the torch the"
        " other rows use.",
        "No PSER and no public reader of a stored priority: the user's own copy of the priorities "
        "(torch) gives η and the decay, and all priorities are written in one `update_priority` call.",
        "Priorities alone: a `PrioritizedSampler` over the storage, without reading it.",
        "A step of 64 environments is one `extend` of 64 rows. The `TensorDict` is built outside the "
        "timed part.",
        "Sequences: `PrioritizedSliceSampler` for the learn step, the uniform `SliceSampler` for sampling alone, both "
        "with cached ends of episodes.",
        "Frames: stacks are stored whole, observation and next observation each. One thread.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario == "index":
            return self._index(load)
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        if scenario == "sequences":
            return self._sequences(load)
        if scenario == "atari":
            return self._atari(load)
        return {}

    def _index(self, load: Workload) -> Mapping[str, Case]:
        storage = _filled(load).storage
        errors = [torch.as_tensor(row) for row in load.td_errors]
        batches = [torch.as_tensor(row) for row in load.batches]

        def sampler() -> PrioritizedSampler:
            made = PrioritizedSampler(load.capacity, alpha=ALPHA, beta=BETA, eps=EPS)
            made.update_priority(
                torch.arange(load.capacity), torch.as_tensor(load.fill_errors, dtype=torch.float32)
            )
            return made

        per = sampler()

        def learn_per(i: int) -> None:
            index, _ = per.sample(storage, BATCH)
            per.update_priority(index, errors[i % POOL].abs())

        def learn_pser(window: int) -> Case:
            own, decay = sampler(), Decay(load, window)

            def learn(i: int) -> None:
                index, _ = own.sample(storage, BATCH)
                own.update_priority(*decay.update(index, errors[i % POOL].abs()))

            return learn

        return {
            "learn PER": learn_per,
            "learn PSER W=5": learn_pser(5),
            "learn PSER W=20": learn_pser(20),
            "sample": lambda i: per.sample(storage, BATCH),
            "update": lambda i: per.update_priority(batches[i % POOL], errors[i % POOL].abs()),
        }

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        per, added = _filled(load), _filled(load)
        errors = [torch.as_tensor(row) for row in load.td_errors]
        batches = [torch.as_tensor(row) for row in load.batches]
        steps = [_tensordict(step)[0] for step in load.steps(environments=1)]

        def learn_per(i: int) -> None:
            _, info = per.sample(return_info=True)
            per.update_priority(info["index"], errors[i % POOL].abs())

        def learn_pser(window: int) -> Case:
            buffer, decay = _filled(load), Decay(load, window)

            def learn(i: int) -> None:
                _, info = buffer.sample(return_info=True)
                buffer.update_priority(*decay.update(info["index"], errors[i % POOL].abs()))

            return learn

        return {
            "learn PER": learn_per,
            "learn PSER W=5": learn_pser(5),
            "learn PSER W=20": learn_pser(20),
            "sample": lambda i: per.sample(return_info=True),
            "update": lambda i: per.update_priority(batches[i % POOL], errors[i % POOL].abs()),
            "add": lambda i: added.add(steps[i % POOL]),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        buffer = _filled(load)
        steps = [_tensordict(step) for step in load.steps(environments=64)]
        return {"add": lambda i: buffer.extend(steps[i % POOL])}

    def _sequences(self, load: Workload) -> Mapping[str, Case]:
        slices = {"slice_len": SEQUENCE_STEPS, "end_key": ("next", "done"), "cache_values": True}
        uniform = self._sliced(load, SliceSampler(**slices))
        sampler = PrioritizedSliceSampler(load.capacity, ALPHA, BETA, EPS, **slices)
        weighted = self._sliced(load, sampler)
        weighted.update_priority(
            torch.arange(load.capacity), torch.as_tensor(load.fill_errors, dtype=torch.float32)
        )
        errors = [torch.as_tensor(row).abs().ravel() for row in load.sequence_errors]

        def learn(i: int) -> None:
            _, info = weighted.sample(return_info=True)
            weighted.update_priority(info["index"], errors[i % POOL])

        return {"learn": learn, "sample": lambda i: uniform.sample(return_info=True)}

    def _sliced(self, load: Workload, sampler: SliceSampler) -> TensorDictReplayBuffer:
        buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(load.capacity), sampler=sampler, batch_size=SEQUENCES * SEQUENCE_STEPS
        )
        buffer.extend(_tensordict(load.transitions))
        return buffer

    def _atari(self, load: Workload) -> Mapping[str, Case]:
        buffer = _empty(load.capacity)
        for rows in _chunks(load.frame_steps(), 500):
            buffer.extend(_tensordict(Transitions(*(np.array(column) for column in zip(*rows, strict=True)))))
        buffer.update_priority(
            torch.arange(load.capacity), torch.as_tensor(load.fill_errors, dtype=torch.float32)
        )
        return {"sample": lambda i: buffer.sample(return_info=True)}


def _chunks(steps: Iterator[FrameStep], size: int) -> Iterator[list[FrameStep]]:
    while rows := list(islice(steps, size)):
        yield rows


PEER = TorchRL()
