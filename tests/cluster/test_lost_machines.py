"""A sweep over several machines of which one is lost: its runs go on elsewhere, and the user is told in a line."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from tests.cluster.machines import Machines, namespaces_are_permitted
from tests.waiting import PATIENCE, until

from pser.records.folder import RunFolder

pytest.importorskip("torch")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'pser[ray]'")

FLAGS = ["--envs", "gym:CartPole-v1", "--replay", "per", "--seeds", "0", "1", "--hidden", "8"]
SMALL = ["--warmup-steps", "20", "--capacity", "100", "--batch-size", "4", "--eval-period-frames", "0"]
SAVING = ["--checkpoint-period-frames", "300", "--log-period-frames", "100", "--tensorboard", "off"]


def run_of(folder, seed):
    return folder / "gym-CartPole-v1" / "PER_MaxPrio" / f"seed-{seed}"


def note_of(run):
    try:
        return json.loads(run.with_name(run.name + ".node").read_text())
    except (OSError, ValueError):
        return {"attempt": 0}


def saved(run):
    return list((run / "checkpoints").glob("*"))


def frames_of(run):
    lines = (run / "train.jsonl").read_text().splitlines()
    return [json.loads(line)["frames"] for line in lines]


def sweep_that_loses_a_machine(folder, frames, *, apart):
    """A sweep of two runs on two machines: one machine is lost, and on the other the worker is killed."""
    out = folder / "sweep"
    with Machines(2, folder, apart=apart) as machines:
        engine = ["--engine", "ray", "--ray-address", machines.address]
        command = [sys.executable, "-m", "pser", "sweep", *FLAGS, *SMALL, *SAVING, "--frames", str(frames)]
        with (
            open(folder / "printed", "w+") as printed,
            subprocess.Popen(
                machines.inside(0, [*command, "--out", str(out), *engine]),
                stdout=printed,
                stderr=subprocess.STDOUT,
                env=machines.environment(),
            ) as process,
        ):
            try:
                until(lambda: process.poll() is not None or all(saved(run_of(out, seed)) for seed in (0, 1)))
                assert process.poll() is None, (folder / "printed").read_text()
                lost, kept = (note_of(run_of(out, seed))["pid"] for seed in (1, 0))
                number = machines.number_of(lost)
                assert number != machines.number_of(kept)
                machines.lose(number)
                os.kill(kept, signal.SIGKILL)
                code = process.wait(timeout=PATIENCE)
            finally:
                process.kill()
        addresses = [machines.ip(number) for number in range(3)]
    return code, (folder / "printed").read_text(), addresses[number], addresses


def check(found, out, frames, *, apart):
    code, printed, lost, addresses = found
    assert "Traceback" not in printed
    assert code == 0, printed
    lines = re.findall(r"seed (\d): finished \(on ([\d.]+), attempt (\d)\)", printed)
    assert sorted((seed, attempt) for seed, _, attempt in lines) == [("0", "2"), ("1", "2")], printed
    if apart:
        assert {where for _, where, _ in lines} == set(addresses[1:]) - {lost}
    for seed in (0, 1):
        run = run_of(out, seed)
        assert RunFolder(run).read_status() == {"state": "finished", "frames": frames, "error": None}
        seen = frames_of(run)
        assert seen == sorted(set(seen))
        assert seen[-1] == frames
        if not apart or seed == 0:  # a machine cut off may have carried its run to the end
            assert "resuming" in run.with_name(f"seed-{seed}.log").read_text()


def test_runs_of_a_lost_machine_and_of_a_killed_worker_go_on(tmp_path):
    found = sweep_that_loses_a_machine(tmp_path, 10_000, apart=False)
    check(found, tmp_path / "sweep", 10_000, apart=False)


@pytest.mark.skipif("PSER_TEST_CLUSTER" not in os.environ, reason="takes minutes: make test-cluster")
def test_runs_of_a_machine_cut_off_the_network_go_on_elsewhere(tmp_path):
    if not namespaces_are_permitted():
        pytest.skip("network namespaces need root and ip")
    found = sweep_that_loses_a_machine(tmp_path, 20_000, apart=True)
    check(found, tmp_path / "sweep", 20_000, apart=True)
