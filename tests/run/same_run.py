"""Whether two runs left the same behind: weights, memory, random generators, records; only times may differ."""

import io
import json

import numpy as np

import pser
from pser.files.container import read_container
from pser.records.checkpoint import checkpoint_paths


def rows(path):
    """The lines of a record without the one field that is measured by the wall clock."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "frames_per_second"} for row in found]


def final_state(run):
    """The newest checkpoint's state, without what is measured by the wall clock."""
    state = read_container(checkpoint_paths(run / "checkpoints")[0] / "state.pser")
    del state["trainer"]["interval"]["seconds"]
    del state["records"]  # the lengths of files that hold measured times
    return state


def memory_bytes(run):
    """All of the newest checkpoint's memory, whatever parts it was written in."""
    stream = io.BytesIO()
    pser.ReplayMemory.load(checkpoint_paths(run / "checkpoints")[0] / "memory.pser").save(stream)
    return stream.getvalue()


def same(one, other):
    """Equal to the last bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


def differences(run, expected):
    """What differs between two finished runs; nothing if they are the same."""
    found = []
    if rows(run / "train.jsonl") != rows(expected / "train.jsonl"):
        found.append("train.jsonl")
    files = ["eval.jsonl", "snapshots/best.pser", "snapshots/last.pser", "status.json"]
    found += [name for name in files if (run / name).read_bytes() != (expected / name).read_bytes()]
    if not same(final_state(run), final_state(expected)):
        found.append("state.pser")
    inspections = [sorted(path.name for path in (path / "inspect").glob("*")) for path in (run, expected)]
    if inspections[0] != inspections[1]:
        found.append("inspect/")
    if memory_bytes(run) != memory_bytes(expected):
        found.append("memory.pser")
    if json.loads((run / "status.json").read_text())["state"] != "finished":
        found.append("not finished")
    return found
