"""The learner's own CPU for an update: with the memory in its process, and with batches that come from a shard."""

import warnings
from typing import Any

from benchmarks.cluster.shard import BatchStream, Shard
from benchmarks.cluster.spent import interleaved, measured, median, ratio
from benchmarks.cluster.tasks import BETA, LEARNED_BATCH, PER_CALL, Task, fill, memory_of
from pser.learner.agent import make_agent
from pser.learner.device import configure_torch
from pser.learner.games import training_game
from pser.learner.loop import observation_shape
from pser.learner.presets import preset_settings

LOCAL, AHEAD, SINGLE = "in-process", "from a shard", "from a shard, one batch a call"


def measure(name: str, task: Task, rounds: int, scale: float) -> dict[str, Any]:
    """CPU of this process for an update; one network learns from all memories, so that only they differ."""
    import ray

    # Arrays of Ray's store cannot be written to, which torch minds.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    settings = preset_settings(task.preset, task.env)
    game = training_game(settings)
    agent = make_agent(
        settings,
        observation_shape(game.observation),
        game.num_actions,
        seed=0,
        device=configure_torch("cpu", 1),
    )
    memory = memory_of(task)
    fill(memory, task)
    shard = ray.remote(num_cpus=0)(Shard).remote(task)
    per_call, updates = PER_CALL[name], max(2, int(scale * task.updates))

    def local() -> None:
        for _ in range(updates):
            batch = memory.sample(LEARNED_BATCH, BETA)
            memory.update_priorities(batch.ids, agent.learn(batch, measure=False).signal)

    def remote(per_call: int) -> None:
        stream = BatchStream(shard, LEARNED_BATCH, per_call)
        for _ in range(updates):
            batch = stream.next()
            stream.learned(batch, agent.learn(batch, measure=False).signal)
        stream.close()

    found = interleaved(
        {
            LOCAL: lambda: measured(local, updates),
            AHEAD: lambda: measured(lambda: remote(per_call), updates),
            SINGLE: lambda: measured(lambda: remote(1), updates),
        },
        rounds,
    )
    return {
        "batches_per_call": per_call,
        "rounds": rounds,
        "seconds": {
            key: {part: median(segments, part) for part in ("own", "cpu", "wall")}
            for key, segments in found.items()
        },
        "times_local": {key: ratio(found[key], found[LOCAL], "own") for key in (AHEAD, SINGLE)},
    }
