"""Hypothesis profiles, and the tests folder on the path so that every test can import the model."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from pser import _kernel

sys.path.insert(0, str(Path(__file__).parent))

# `make test-asan` and `make test-tsan` must not pass by testing the ordinary kernel.
if os.environ.get("PSER_EXPECT_SANITIZER", _kernel.SANITIZER) != _kernel.SANITIZER:
    raise RuntimeError(f"expected a sanitized kernel, got {_kernel.__file__}")

COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
# HYPOTHESIS_PROFILE=thorough searches longer; CI repeats the same examples so that a red build stays red.
settings.register_profile("default", max_examples=40, stateful_step_count=30, derandomize=True, **COMMON)
settings.register_profile("thorough", max_examples=1000, stateful_step_count=60, **COMMON)
# `make mutants` wants to know that a test fails, not the smallest example of it.
settings.register_profile(
    "mutants",
    max_examples=40,
    stateful_step_count=30,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    **COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _exact_small_numbers():
    """Training flushes denormal numbers to zero, for speed; the memory is tested on all numbers."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
