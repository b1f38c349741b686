"""The learner's own CPU for an update: with the memory in its process, and with batches that come from a shard."""

from typing import Any

from benchmarks.cluster.fed import Fed
from benchmarks.cluster.spent import interleaved, measured, median, ratio
from benchmarks.cluster.tasks import BETA, LEARNED_BATCH, Task, add_chunk, fill, memory_of, settings_of
from pser.learner.agent import make_agent
from pser.learner.device import configure_torch
from pser.learner.games import training_game
from pser.learner.loop import observation_shape

LOCAL, AHEAD, SINGLE = "in-process", "from a shard", "from a shard, one batch a call"


def measure(task: Task, rounds: int, scale: float) -> dict[str, Any]:
    """CPU of this process for an update; one network learns from all memories, so that only they differ."""
    settings = settings_of(task, LEARNED_BATCH)
    game = training_game(settings)
    agent = make_agent(
        settings,
        observation_shape(game.observation),
        game.num_actions,
        seed=0,
        device=configure_torch("cpu", 1),
    )
    memory = memory_of(task)
    fill(task, lambda chunk: add_chunk(memory, task, chunk))
    ahead, single = Fed(task, LEARNED_BATCH), Fed(task, LEARNED_BATCH, per_call=1)
    updates = max(1, int(scale * task.updates / ahead.per_call)) * ahead.per_call

    def local() -> None:
        for _ in range(updates):
            batch = memory.sample(LEARNED_BATCH, BETA)
            memory.update_priorities(batch.ids, agent.learn(batch, measure=False).signal)

    def remote(fed: Fed) -> None:
        for _ in range(updates):
            batch = fed.draw()
            fed.learned(batch, agent.learn(batch, measure=False).signal)
        fed.settle()

    found = interleaved(
        {
            LOCAL: lambda: measured(local, updates),
            AHEAD: lambda: measured(lambda: remote(ahead), updates),
            SINGLE: lambda: measured(lambda: remote(single), updates),
        },
        rounds,
    )
    return {
        "batches_per_call": ahead.per_call,
        "rounds": rounds,
        "seconds": {
            key: {part: median(segments, part) for part in ("own", "cpu", "wall")}
            for key, segments in found.items()
        },
        "times_local": {key: ratio(found[key], found[LOCAL], "own") for key in (AHEAD, SINGLE)},
    }
