"""Ray on this machine, started once for all tests of a session and ended with it."""

import os

import pytest


@pytest.fixture(scope="session")
def ray():
    """Two CPUs' worth of Ray; without Ray the tests are skipped."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    module = pytest.importorskip("ray", reason="Ray is not installed: pip install 'pser[ray]'")
    module.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80 * 2**20,
    )
    yield module
    module.shutdown()
