"""This project: `PriorityIndex` and `ReplayMemory`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import pser
from benchmarks.cold import AfterNetwork
from benchmarks.peer import Case, Scenario
from benchmarks.settings import (
    ALPHA,
    BATCH,
    BETA,
    EPS,
    ETA,
    FRAME,
    GAMMA,
    POOL,
    RHO,
    SEQUENCE_STEPS,
    SEQUENCES,
    STACK,
    STREAMS,
)
from benchmarks.workload import Workload

PER = pser.PER(alpha=ALPHA, eps=EPS)


def _pser(window: int, rho: float = RHO, alpha: float = ALPHA) -> pser.PSER:
    # No decay while filling: every library starts from the same priorities.
    return pser.PSER(alpha=alpha, eps=EPS, eta=ETA, rho=rho, window=window, decay_on_insert=False)


def _filled_index(
    load: Workload, prioritization: pser.Prioritization, streams: int = 1
) -> pser.PriorityIndex:
    index = pser.PriorityIndex(load.capacity, prioritization, streams, seed=0)
    steps = load.capacity // streams
    # Stream e plays the e-th part of the transitions; all streams step together.
    starts = load.starts[: steps * streams].reshape(streams, steps).T.reshape(-1)
    starts[:streams] = True
    priorities = load.fill_errors[: steps * streams] + EPS
    for rows in np.array_split(np.arange(steps * streams), 100):
        index.append(starts[rows], priorities[rows], stream=rows % streams)
    return index


def _learn(index: pser.PriorityIndex, td_errors: NDArray[np.float32]) -> Case:
    size = td_errors.shape[1]

    def step(i: int) -> None:
        ids, _ = index.sample(size, beta=BETA)
        index.update(ids, td_errors[i % POOL])

    return step


def _cold_learn(load: Workload, rule: pser.Prioritization, streams: int = 1) -> Case:
    return AfterNetwork(_learn(_filled_index(load, rule, streams), load.td_errors))


def _filled_memory(load: Workload, prioritization: pser.Prioritization) -> pser.ReplayMemory:
    memory = pser.ReplayMemory(
        capacity=load.capacity,
        observation=pser.Array((4,), np.float32),
        action=pser.Array((), np.int64),
        prioritization=prioritization,
        gamma=GAMMA,
        seed=0,
    )
    for rows in np.split(np.arange(load.capacity), 100):
        step = (column[rows] for column in load.transitions)
        memory.add(*step, priority=load.fill_errors[rows] + EPS, stream=np.zeros(len(rows), np.int64))
    return memory


class Ours:
    """This project as its users drive it."""

    name = "pser"
    distributions = ("pser",)
    notes = (
        "η and the decay within `update`; the frame batch is one (32, 5, 84, 84) array and two views of it.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario in ("index", "index-10m"):
            return self._index(load)
        if scenario == "streams":
            return self._streams(load)
        if scenario == "cold":
            return self._cold(load)
        if scenario == "cold-10m":
            return {"learn PER": _cold_learn(load, PER), "learn PSER W=5": _cold_learn(load, _pser(5))}
        if scenario == "memory":
            return self._memory(load)
        if scenario == "vector":
            return self._vector(load)
        if scenario == "sequences":
            return self._sequences(load)
        if scenario == "atari":
            return self._atari(load)
        way, _, played = scenario.partition(" ")
        return self._game(load, played, way == "compressed") if played else {}

    def _index(self, load: Workload) -> Mapping[str, Case]:
        errors, batches = load.td_errors, load.batches
        per = _filled_index(load, PER)
        return {
            "learn PER": _learn(per, errors),
            "learn PSER W=5": _learn(_filled_index(load, _pser(5)), errors),
            "learn PSER W=20": _learn(_filled_index(load, _pser(20)), errors),
            "learn PSER W=20 ρ=0.8": _learn(_filled_index(load, _pser(20, rho=0.8)), errors),
            "learn PSER W=5 α=0.6": _learn(_filled_index(load, _pser(5, alpha=0.6)), errors),
            "sample": lambda i: per.sample(BATCH, beta=BETA),
            "update": lambda i: per.update(batches[i % POOL], errors[i % POOL]),
        }

    def _streams(self, load: Workload) -> Mapping[str, Case]:
        per, decaying = (_filled_index(load, rule, STREAMS) for rule in (PER, _pser(5)))
        return {
            "learn PER": _learn(per, load.td_errors),
            "learn PSER W=5": _learn(decaying, load.td_errors),
            "learn PER, batch 512": _learn(per, load.large_td_errors),
            "learn PSER W=5, batch 512": _learn(decaying, load.large_td_errors),
        }

    def _cold(self, load: Workload) -> Mapping[str, Case]:
        return {
            "learn PER": _cold_learn(load, PER),
            "learn PSER W=5": _cold_learn(load, _pser(5)),
            "learn PSER W=20 ρ=0.8": _cold_learn(load, _pser(20, rho=0.8)),
            "learn PER, 64 streams": _cold_learn(load, PER, STREAMS),
            "learn PSER W=5, 64 streams": _cold_learn(load, _pser(5), STREAMS),
        }

    def _memory(self, load: Workload) -> Mapping[str, Case]:
        errors, batches = load.td_errors, load.batches
        per, added = _filled_memory(load, PER), _filled_memory(load, _pser(5))
        steps = [tuple(column[0] for column in step) for step in load.steps(environments=1)]

        def learn(memory: pser.ReplayMemory) -> Case:
            def step(i: int) -> None:
                batch = memory.sample(BATCH, beta=BETA)
                memory.update_priorities(batch.ids, errors[i % POOL])

            return step

        return {
            "learn PER": learn(per),
            "learn PSER W=5": learn(_filled_memory(load, _pser(5))),
            "learn PSER W=20": learn(_filled_memory(load, _pser(20))),
            "sample": lambda i: per.sample(BATCH, beta=BETA),
            "sample torch": lambda i: per.sample(BATCH, beta=BETA, out="torch"),
            "update": lambda i: per.update_priorities(batches[i % POOL], errors[i % POOL]),
            "add": lambda i: added.add(*steps[i % POOL]),
        }

    def _vector(self, load: Workload) -> Mapping[str, Case]:
        memory = pser.ReplayMemory(
            capacity=load.capacity,
            observation=pser.Array((4,), np.float32),
            action=pser.Array((), np.int64),
            num_envs=64,
            prioritization=_pser(5),
            gamma=GAMMA,
            seed=0,
        )
        steps = load.steps(environments=64)
        for i in range(load.capacity // 64):
            memory.add(*steps[i % POOL])
        return {"add": lambda i: memory.add(*steps[i % POOL])}

    def _sequences(self, load: Workload) -> Mapping[str, Case]:
        memory, errors = _filled_memory(load, _pser(5)), load.sequence_errors

        def learn(i: int) -> None:
            batch = memory.sample_sequences(SEQUENCES, SEQUENCE_STEPS, beta=BETA)
            memory.update_priorities(batch.ids, errors[i % POOL], mask=batch.learn)

        return {
            "learn": learn,
            "sample": lambda i: memory.sample_sequences(SEQUENCES, SEQUENCE_STEPS, beta=BETA),
        }

    def _atari(self, load: Workload) -> Mapping[str, Case]:
        memory = pser.ReplayMemory(
            capacity=load.capacity,
            observation=pser.Frames(FRAME, stack=STACK),
            action=pser.Array((), np.int64),
            prioritization=_pser(5),
            gamma=GAMMA,
            seed=0,
        )
        for step, error in zip(load.frame_steps(), load.fill_errors, strict=True):
            memory.add(*step, priority=error + EPS)
        return {"sample": lambda i: memory.sample(BATCH, beta=BETA)}

    def _game(self, load: Workload, how: str, compress: bool) -> Mapping[str, Case]:
        from benchmarks.games import memory_of

        memory = memory_of(how, load.capacity, compress)
        return {"sample": lambda i: memory.sample(BATCH, beta=BETA)}


PEER = Ours()
