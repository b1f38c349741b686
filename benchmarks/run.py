"""`make bench`: this project beside other replay memories, in one interleaved run."""

from __future__ import annotations

import argparse
import datetime
import json
import time
from pathlib import Path

from benchmarks.coordinate import measure
from benchmarks.environments import ROOT, ensure
from benchmarks.machine import machine
from benchmarks.peer import PEERS
from benchmarks.report import as_json, markdown
from benchmarks.settings import ALPHA, BETA, ETA, RHO
from benchmarks.targets import verdicts


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the capacities, few rounds, into build/"
    )
    parser.add_argument("--rounds", type=int, help="rounds (default 40; quick: 8)")
    parser.add_argument("--only", nargs="+", choices=sorted(PEERS), help="libraries to run (default: all)")
    parser.add_argument(
        "--output", type=Path, help="folder to write to (default docs; quick: build/bench-quick)"
    )
    return parser.parse_args()


def main() -> None:
    """Make the environments, run, write the page and the data."""
    options = parse()
    output = options.output or (ROOT / "build" / "bench-quick" if options.quick else ROOT / "docs")
    rounds = options.rounds or (8 if options.quick else 40)
    target_ms = 10.0 if options.quick else 20.0
    modules = [module for module in PEERS if not options.only or module in options.only]
    environments = {PEERS[module] for module in modules}
    pythons = {environment: ensure(environment) for environment in sorted(environments)}

    begin = time.monotonic()
    run = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "rounds": rounds,
        "quick": options.quick,
        "settings": {"target_ms": target_ms, "beta": BETA, "eta": ETA, "rho": RHO, "alpha": ALPHA},
    }
    measured = measure(
        {module: pythons[PEERS[module]] for module in modules},
        rounds,
        target_ms,
        0.1 if options.quick else 1.0,
    )
    run["seconds"] = round(time.monotonic() - begin)
    output.mkdir(parents=True, exist_ok=True)
    (output / "benchmarks.md").write_text(markdown(measured, run))
    (output / "benchmarks.json").write_text(
        json.dumps(as_json(measured, run), indent=1, ensure_ascii=False) + "\n"
    )
    for verdict in verdicts(measured):
        print(f"{'PASS' if verdict.met else 'FAIL'}  {verdict.target}: {verdict.measured}")
    print(f"wrote {output / 'benchmarks.md'} and benchmarks.json after {run['seconds']} s")


if __name__ == "__main__":
    main()
