"""Ray on this machine, started once for all tests of a session and ended with it."""

import os

import pytest

from pser.cluster.engine import QUIET


@pytest.fixture(scope="session")
def ray():
    """Two CPUs' worth of Ray; without Ray the tests are skipped."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
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
