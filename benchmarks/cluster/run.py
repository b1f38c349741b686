"""What Ray costs: transitions into a memory elsewhere, batches out of it, a learner fed by it; RLlib with our buffer.

    python -m benchmarks.cluster.run [--quick] [--out docs/benchmarks-ray.md]

One Ray on this machine, one run: contenders take turns in rounds, so that whatever else the machine does meets all
alike. Costs are CPU time of all processes, Ray's own included; ratios are medians of the rounds' own ratios, with
bootstrap intervals.
"""

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
warnings.simplefilter("ignore")  # of the libraries under test

from benchmarks.cluster import faults, learner, rllib, scaling, sizing_table, traffic  # noqa: E402
from benchmarks.cluster.page import page  # noqa: E402
from benchmarks.cluster.tasks import TASKS  # noqa: E402
from benchmarks.machine import machine  # noqa: E402

ROUNDS, QUICK_ROUNDS, QUICK_SCALE = 15, 3, 0.1
PACKAGES = ("pser", "ray", "torch", "torchrl", "numpy")
STORE_BYTES = 1 << 30
PARTS = ("traffic", "learner", "scaling", "rllib", "faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few and short rounds, for a look")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help="leave other parts as they are"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks-ray.md"))
    parser.add_argument(
        "--cluster-page", type=Path, help="by default docs/cluster.md, with the default --out"
    )
    arguments = parser.parse_args()
    rounds, scale = (QUICK_ROUNDS, QUICK_SCALE) if arguments.quick else (ROUNDS, 1.0)
    kept = arguments.out.with_suffix(".json")
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    results |= {
        "machine": machine(),
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES),
    }
    for part in arguments.only:
        results[part] = measure(part, rounds, scale)
    arguments.out.write_text(page(results), encoding="utf-8")
    kept.write_text(json.dumps(results, indent=2) + "\n")
    usual = arguments.out == parser.get_default("out")
    cluster = arguments.cluster_page or (Path("docs/cluster.md") if usual else None)
    if cluster is not None and "traffic" in results:
        sizing_table.write_into(cluster, results)
    print(page(results))


def measure(part: str, rounds: int, scale: float) -> dict[str, Any]:
    """One part, with a Ray of its own where it needs one."""
    if part == "rllib":
        return rllib.measure(rounds, scale)
    if part == "faults":
        return faults.measure(started_ray)
    if part == "scaling":
        with started_ray():
            return scaling.measure(scale)
    found = {}
    for name, task in TASKS.items():
        with started_ray():
            found[name] = (traffic if part == "traffic" else learner).measure(task, rounds, scale)
        print(f"{part}: {name}", file=sys.stderr, flush=True)
    return found


@contextlib.contextmanager
def started_ray() -> Iterator[None]:
    """Ray on this machine, which ends with the context."""
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=STORE_BYTES,
    )
    try:
        yield
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
