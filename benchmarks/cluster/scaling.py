"""A whole run on Ray with more and more actors: what its parts spend on a step, and what the model makes of it."""

import time
from typing import Any

import psutil

from benchmarks.cluster.spent import of_all
from benchmarks.cluster.tasks import TASKS, settings_of
from pser.cluster.settings import ClusterSettings
from pser.cluster.sizing import Costs, Pace, Rate, steps_per_second, steps_per_second_on
from pser.cluster.training import RayEngine

ACTORS, ENVS, SAMPLES_PER_INSERT, BATCH = (1, 2, 4, 8), 1, 1, 32
MODELLED = (1, 2, 4, 8, 16, 32, 64)
STEPS, WARMUP = 40_000, 5_000


def measure(scale: float) -> dict[str, Any]:
    """Of MinAtar Breakout: CPU per step by part, and steps a second here, where all share the cores."""
    return {
        "envs_per_actor": ENVS,
        "samples_per_insert": SAMPLES_PER_INSERT,
        "batch_size": BATCH,
        "cores": psutil.cpu_count(),
        "rows": {str(actors): _run(actors, max(4_000, int(scale * STEPS))) for actors in ACTORS},
    }


def _run(actors: int, steps: int) -> dict[str, float]:
    """One run, measured once its memory is warm and its processes have all begun."""
    settings = settings_of(TASKS["minatar"], BATCH, actors * ENVS).override(
        {
            "initial": "td",
            "warmup_steps": WARMUP,
            "update_period_steps": BATCH // SAMPLES_PER_INSERT,
            "epsilon_spread": 7.0,
            "eval_period_frames": 0,
            "checkpoint_period_frames": 0,
            "budget_frames": 10**9,
        }
    )
    engine = RayEngine(ClusterSettings(actors=actors, envs_per_actor=ENVS))
    with engine.open(settings) as trainer:
        for _ in trainer.train(2 * WARMUP):
            pass
        began = trainer.counters.steps, trainer.counters.updates
        before, own, wall = of_all(), time.process_time(), time.perf_counter()
        for _ in trainer.train(2 * WARMUP + steps):
            pass
        wall, own, after = time.perf_counter() - wall, time.process_time() - own, of_all()
        played, updates = trainer.counters.steps - began[0], trainer.counters.updates - began[1]
        spent = {pid: seconds - before.get(pid, 0.0) for pid, seconds in after.items()}
        players = sum(spent.get(pid, 0.0) for pid in trainer.crew.pids if pid)
        shards = sum(spent.get(pid, 0.0) for pid in trainer.replay.places.pids if pid)
        return {
            "steps": played,
            "updates": updates,
            "steps_per_second": played / wall,
            "learner": own / played,
            "actors": players / played,
            "shards": shards / played,
            "ray": (sum(spent.values()) - players - shards) / played,
            "learner_per_update": own / updates,
        }


def model_of(found: dict[str, Any], costs: Costs) -> list[tuple[int, Rate]]:
    """(actors, what the model says of them when each process has a core)."""
    return [(actors, steps_per_second(actors, _pace(found), costs)) for actors in MODELLED]


def shared_rate(found: dict[str, Any], costs: Costs) -> float:
    """Steps a second by the model when all share the cores there were."""
    return steps_per_second_on(found["cores"], _pace(found), costs)


def _pace(found: dict[str, Any]) -> Pace:
    row = found["rows"]["2"]
    return Pace(
        step_seconds=row["actors"],
        update_seconds=row["learner_per_update"],
        samples_per_insert=found["samples_per_insert"],
        batch_size=found["batch_size"],
    )
