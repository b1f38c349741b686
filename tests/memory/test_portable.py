"""The portable and the AVX2 build of the tree must not differ in a single bit."""

import os
import subprocess
import sys

import pytest

from pser import _kernel

PROGRAM = """
import hashlib, numpy as np, pser
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for streams in (1, 5):
    rule = pser.PSER(alpha=0.6, rho=0.8, weights="memory")
    index = pser.PriorityIndex(5_000, rule, num_streams=streams, seed=1)
    for step in range(300):
        index.append(rng.random(40) < 0.1, stream=np.arange(40) % streams, td_error=rng.normal(size=40))
        ids, weights = index.sample(32, beta=0.4)
        index.update(ids, rng.normal(size=32))
        digest.update(ids.tobytes() + weights.tobytes())
    digest.update(np.float64(index.stats()["total_mass"]).tobytes())
print(digest.hexdigest(), pser._kernel.has_avx2())
"""


def run(**environment: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.split()


@pytest.mark.skipif(not _kernel.has_avx2(), reason="this processor has no AVX2 to compare with")
def test_portable_and_avx2_builds_give_the_same_bits():
    fast, portable = run(), run(PSER_PORTABLE="1")
    assert fast[1] == "True"
    assert portable[1] == "False"
    assert fast[0] == portable[0]
