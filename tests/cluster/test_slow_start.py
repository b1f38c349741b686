"""A run whose machine was lost is begun again once, however long the next attempt takes to begin."""

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from pser.cluster import sweep as ray_sweep
from pser.cluster.sweep import RayTasks

from .test_sweep import job_of, note


class SlowCluster:
    """What `RayTasks` asks of Ray, of a cluster on which no task begins."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self):
        self.begun, self.cancelled = 0, []

    def nodes(self):
        return [{"NodeID": "here", "Alive": True, "Resources": {"CPU": 1.0}}]

    def remote(self, **_):
        return lambda function: SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.begin))

    def begin(self, *_):
        self.begun += 1
        return f"task {self.begun}"

    def cancel(self, ref, *, force):
        self.cancelled.append(ref)


def test_an_attempt_that_is_slow_to_begin_is_not_begun_again(tmp_path, monkeypatch):
    cluster = SlowCluster()
    monkeypatch.setattr(ray_sweep, "join_ray", lambda address: (cluster, False))
    monkeypatch.setattr(ray_sweep, "CUT_OFF_SECONDS", 0.0)
    tasks, job = RayTasks(), job_of(tmp_path / "run")
    tasks.submit(job)
    lost = {"node": "1.2.3.4", "node_id": "of a machine cut off", "attempt": 1}
    job.folder.with_name("run.node").write_text(json.dumps(lost))
    for _ in range(3):
        tasks._leave_cut_off_machines(list(tasks._waiting))
    assert (cluster.begun, cluster.cancelled) == (2, ["task 1"])
    assert list(tasks._waiting) == ["task 2"]
    assert note(job.folder) == {**lost, "node_id": ""}  # the next attempt is the second
    job.folder.with_name("run.node").write_text(
        json.dumps({**lost, "attempt": 2})
    )  # it began, and was lost too
    tasks._leave_cut_off_machines(list(tasks._waiting))
    assert cluster.cancelled == ["task 1", "task 2"]
