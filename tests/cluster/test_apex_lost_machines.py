"""One run over several machines of which one is lost: what it held is replaced, and the run goes on."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from tests.cluster.machines import Machines, namespaces_are_permitted
from tests.cluster.test_apex import rows
from tests.waiting import PATIENCE, until

from pser.records.folder import RunFolder

pytest.importorskip("torch")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'pser[ray]'")

SMALL = ["--hidden", "8", "--capacity", "20000", "--warmup-steps", "200", "--eval-period-frames", "0"]
SAVING = ["--checkpoint-period-frames", "1000", "--log-period-frames", "250", "--frames", "1e6"]
ENGINE = ["--engine", "ray", "--actors", "3", "--shards", "2", "--chunk-steps", "10", "--tensorboard", "off"]


def held_by(machines, number):
    """The actors and shards that live on a machine."""
    roles = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        title = " ".join(process.info["cmdline"] or [])
        if title.startswith(("ray::Player", "ray::Shard")) and machines.has(number, process.info["pid"]):
            roles.append("actor" if "Player" in title else "shard")
    return roles


@pytest.mark.skipif("PSER_TEST_CLUSTER" not in os.environ, reason="takes minutes: make test-cluster")
@pytest.mark.parametrize("apart", [False, True], ids=["killed", "cut-off"])
def test_a_run_goes_on_without_the_machine_that_held_a_shard(tmp_path, apart):
    if apart and not namespaces_are_permitted():
        pytest.skip("network namespaces need root and ip")
    run = tmp_path / "run"
    with Machines(3, tmp_path, apart=apart, cpus=3) as machines:
        address = ["--ray-address", machines.address, "--run-dir", str(run)]
        command = [sys.executable, "-m", "pser", "train", "gym:CartPole-v1", *SMALL, *SAVING, *ENGINE]
        with (
            open(tmp_path / "printed", "w+") as printed,
            subprocess.Popen(
                machines.inside(0, [*command, *address]),
                stdout=printed,
                stderr=subprocess.STDOUT,
                env=machines.environment(),
            ) as process,
        ):
            try:
                told = (tmp_path / "printed").read_text
                until(lambda: process.poll() is not None or list((run / "checkpoints").glob("frames-*")))
                assert process.poll() is None, told()
                number = next(n for n in (1, 2, 3) if "shard" in held_by(machines, n))
                roles = held_by(machines, number)
                frames = RunFolder(run).read_status()["frames"]
                machines.lose(number)
                until(lambda: told().count(" was lost") >= len(roles) or process.poll() is not None)
                frames = RunFolder(run).read_status()["frames"]
                until(lambda: RunFolder(run).read_status()["frames"] > frames + 2000 or process.poll())
                process.send_signal(signal.SIGTERM)
                code = process.wait(timeout=PATIENCE)
            finally:
                process.kill()
    assert "Traceback" not in told()
    assert code == 128 + signal.SIGTERM, told()
    lost = rows(run)[-1]["cluster"]
    assert lost["shards_lost"] >= roles.count("shard")
    assert lost["actors_lost"] >= roles.count("actor")
    assert lost["steps_lost"] <= lost["shards_lost"] * 1500  # a period, and what was on its way
    assert RunFolder(run).read_status()["state"] == "stopped"
