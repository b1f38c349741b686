"""Small memories with a history, for the page that shows them."""

import numpy as np

import pser


def played(prioritization=None, *, spec=None, observe=None, steps=150, capacity=200, seed=0, **settings):
    """Two environments, episodes of many lengths, sampled and updated; the memory and the batches it gave."""
    spec = spec or pser.Array((4, 10, 10), np.uint8)
    observe = observe or (lambda rng: (rng.random((2, 4, 10, 10)) < 0.1).astype(np.uint8))
    memory = pser.ReplayMemory(
        capacity, spec, num_envs=2, prioritization=prioritization or pser.PSER(), seed=seed, **settings
    )
    rng = np.random.default_rng(seed)
    now, drawn = observe(rng), []
    for t in range(steps):
        then = observe(rng)
        memory.add(now, rng.integers(0, 3, 2), rng.normal(size=2), then, rng.random(2) < 0.08, [False] * 2)
        now = then
        if t > 20:
            batch = memory.sample(8)
            errors = np.where(rng.random(8) < 0.1, 2.0, 0.05) * rng.random(8)
            memory.update_priorities(batch.ids, errors)
            drawn.append((batch.ids.copy(), errors))
    return memory, drawn[-16:]
