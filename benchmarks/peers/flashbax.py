"""flashbax: `make_prioritised_trajectory_buffer`, jitted, its state donated, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import flashbax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peer import Case, Scenario
from benchmarks.settings import ALPHA, POOL, SEQUENCE_STEPS, SEQUENCES
from benchmarks.workload import Workload

CHUNK = 10_000


class Flashbax:
    """flashbax as its users drive it."""

    name = "flashbax"
    distributions = ("flashbax", "jax", "jaxlib")
    notes = (
        "Sequences only: a prioritised trajectory buffer with a priority for each sequence (period 1), so an update"
        " writes 32 of them where this project writes 1,280. Its windows cross the ends of episodes.",
    )

    def build(self, scenario: Scenario, load: Workload) -> Mapping[str, Case]:
        """Cases of a scenario."""
        if scenario != "sequences":
            return {}
        buffer = flashbax.make_prioritised_trajectory_buffer(
            add_batch_size=1,
            sample_batch_size=SEQUENCES,
            sample_sequence_length=SEQUENCE_STEPS,
            period=1,
            min_length_time_axis=SEQUENCE_STEPS,
            max_length_time_axis=load.capacity,
            priority_exponent=ALPHA,
        )
        rows = {key: jnp.asarray(value) for key, value in load.transitions._asdict().items()}
        state = buffer.init({key: value[0] for key, value in rows.items()})
        add = jax.jit(buffer.add, donate_argnums=0)
        sample = jax.jit(buffer.sample)
        update = jax.jit(buffer.set_priorities, donate_argnums=0)
        for start in range(0, load.capacity, CHUNK):
            state = add(state, {key: value[None, start : start + CHUNK] for key, value in rows.items()})
        held = [jax.block_until_ready(state)]
        keys = jax.random.split(jax.random.PRNGKey(0), POOL)
        errors = [jnp.asarray(np.abs(row[:SEQUENCES])) for row in load.td_errors]

        def learn(i: int) -> None:
            batch = sample(held[0], keys[i % POOL])
            held[0] = jax.block_until_ready(update(held[0], batch.indices, errors[i % POOL]))

        return {
            "learn": learn,
            "sample": lambda i: jax.block_until_ready(sample(held[0], keys[i % POOL])),
        }


PEER = Flashbax()
