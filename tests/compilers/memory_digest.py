"""A memory driven by a fixed random history, printed as a digest: every build of the kernel must print the same."""

import hashlib

import numpy as np

import pser
from pser import _kernel


def digest(prioritization: pser.PSER | pser.PER | pser.Uniform, n_step: int) -> str:
    """Frames and an array in three environments; all that batches and statistics give back."""
    rng = np.random.default_rng(0)
    memory = pser.ReplayMemory(
        500,
        {"screen": pser.Frames((3, 2), stack=2), "speed": pser.Array((2,))},
        num_envs=3,
        prioritization=prioritization,
        n_step=n_step,
        seed=1,
    )
    seen = hashlib.sha256()
    frames = rng.integers(0, 256, (3, 2, 3, 2), np.uint8)
    for step in range(600):
        following = np.concatenate([frames[:, 1:], rng.integers(0, 256, (3, 1, 3, 2), np.uint8)], axis=1)
        speed = rng.normal(size=(2, 3, 2)).astype(np.float32)
        ends = rng.random(3) < 0.05
        memory.add(
            {"screen": frames, "speed": speed[0]},
            np.full(3, step),
            rng.normal(size=3),
            {"screen": following, "speed": speed[1]},
            ends,
            np.zeros(3, bool),
            td_error=rng.normal(size=3) if step % 2 else None,
        )
        frames = following
        if step >= n_step:
            batch = memory.sample(16, beta=0.4)
            memory.update_priorities(batch.ids, rng.normal(size=16))
            for array in (batch.ids, batch.weights, batch.reward, batch.observation["screen"]):
                seen.update(np.ascontiguousarray(array).tobytes())
            seen.update(np.ascontiguousarray(batch.next_observation["speed"]).tobytes())
    seen.update(repr(sorted(memory.stats().items())).encode())
    return seen.hexdigest()


if __name__ == "__main__":
    for rule in (
        pser.PSER(),
        pser.PSER(alpha=0.6, decay="add", weights="memory"),
        pser.PER(),
        pser.PER(variant="rank"),
        pser.Uniform(),
    ):
        for n_step in (1, 3):
            print(digest(rule, n_step), type(rule).__name__, n_step)
    print("compiled by", _kernel.COMPILER)
