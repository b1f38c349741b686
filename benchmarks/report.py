"""From measurements to `docs/benchmarks.md` and `.json`; every number on the page comes from the run."""

from __future__ import annotations

import json
import statistics
from typing import Any

from benchmarks.cold import REPEATS
from benchmarks.coordinate import Measurements
from benchmarks.machine import in_words
from benchmarks.settings import COMPRESSED_BESIDE, PLAYED, SCORES
from benchmarks.targets import COMPRESSED, COPY, OURS, SB3, Numbers, verdicts


def _us(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cell(numbers: Numbers, case: str, module: str) -> str:
    if not numbers.has(case, module):
        return "–"
    low, high = numbers.quartiles(case, module)
    text = f"{_us(numbers.median(case, module))} [{_us(low)}–{_us(high)}]"
    if module != OURS and numbers.has(case, OURS):
        text += f" · {numbers.ratio((case, module), (case, OURS)):.1f}×"
    return text


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def _times_table(measured: Measurements, columns: dict[str, str], modules: list[str]) -> list[str]:
    numbers = Numbers(measured)
    rows = [
        [f"**{measured.peers[m]['name']}**" if m == OURS else measured.peers[m]["name"]]
        + [_cell(numbers, case, m) for case in columns]
        for m in modules
        if any(numbers.has(case, m) for case in columns)
    ]
    return _table(["", *columns.values()], rows)


LEARN = {
    "learn PER": "learn, PER",
    "learn PSER W=5": "learn, PSER W=5",
    "learn PSER W=20": "learn, PSER W=20",
}
PARTS = {"sample": "sample 32", "update": "update 32 (PER)"}

HOW = """\
- One process per library, all alive at once. A round asks every library for one repetition of every case,
  in a new random order; the figures are medians over the rounds with [first–third quartile], and the ratios
  are medians of the ratio within a round. A repetition is as many iterations as take about {target_ms:g}
  ms, after a tenth of it unmeasured.
- Times are CPU time of the process (user and system), in µs: on an idle machine the same as wall time, on a
  busy one less disturbed by others. Wall over CPU in this run: median {wall:.2f}. Garbage collection is
  off, as in `timeit`; every library has one thread.
- A learn step is: sample 32, importance-sampling weights (β = {beta}), update these 32 from prepared TD
  errors, and for PSER η = {eta} and the backward decay (ρ = {rho}, MAX). α = {alpha} everywhere. What the
  network would do is not in it.
- Memories are full and hold the same transitions, episodes (100 to 300 steps) and priorities. TD errors are
  prepared outside the timed part. Caches are warm, as in any loop that does nothing else, but where it says
  cold: there a gradient step of the network of Mnih et al. (2015) comes before each learn step, and the
  learn step alone is timed (wall time, the median of {cold} in a repetition).
- With 64 streams, each plays its own episodes and all step together.
- A library without PSER is given it as its user would: read the priorities of the W predecessors, take the
  larger value, write. Where two windows of a batch overlap, the last write stands, where this
  project takes the larger.
- Frames: 100,000 transitions of 84×84 frames, stacks of 4, episodes of 300 to 700 steps; a batch is 32 ×
  (observation, next observation) with its weights. Resident memory is what the process grew by while the
  memory was made and filled; a small one made before it pays for imports and compilation.
- Real games: 30,000 steps each, played at random and by a policy, in a plain and in a compressed memory; a batch
  as above. The policies are linear in a coarse view of the screen, found by a short search
  (`benchmarks/policies.py`), with one action in ten at random; the table says how far that brought them."""


def markdown(measured: Measurements, run: dict[str, Any]) -> str:
    """The page."""
    numbers = Numbers(measured)
    modules = [OURS, *(m for m in measured.peers if m not in (OURS, COPY))]
    lines = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {run['date']}; do not edit. "
        f"{in_words(run['machine'])}; {run['rounds']} rounds.",
        "",
        *(["A quick run: every capacity below is in truth a tenth of what is named.", ""] * run["quick"]),
        "## Targets",
        "",
        *_table(
            ["target", "measured", ""],
            [[v.target, v.measured, "PASS" if v.met else "**FAIL**"] for v in verdicts(measured)],
        ),
    ]
    lines += [f"Not measured: {failure}" for failure in measured.failures] + [""] * bool(measured.failures)

    index_cases = {f"index/{key}": label for key, label in {**LEARN, **PARTS}.items()}
    lines += ["## Priorities alone: `PriorityIndex`, 1M transitions", "", "µs, and how many times ours.", ""]
    lines += _times_table(measured, index_cases, modules)
    lines += [
        "Libraries that cannot sample indices without the transitions are in the next table only; the target "
        "above compares with the fastest of both tables.",
        "",
    ]
    more = {
        "index/learn PSER W=5 α=0.6": "1M, PSER W=5, α = 0.6 (a power instead of a square root)",
        "index/learn PSER W=20 ρ=0.8": "1M, PSER W=20, ρ = 0.8 (decay that reaches the whole window)",
        **{f"index-10m/{key}": f"10M, {label}" for key, label in LEARN.items()},
        "streams/learn PER": "1M of 64 streams, PER",
        "streams/learn PSER W=5": "1M of 64 streams, PSER W=5",
        "streams/learn PER, batch 512": "1M of 64 streams, PER, batch 512",
        "streams/learn PSER W=5, batch 512": "1M of 64 streams, PSER W=5, batch 512",
        "cold/learn PER": "1M, cold caches, PER",
        "cold/learn PSER W=5": "1M, cold caches, PSER W=5",
        "cold/learn PSER W=20 ρ=0.8": "1M, cold caches, PSER W=20, ρ = 0.8",
        "cold/learn PER, 64 streams": "1M of 64 streams, cold caches, PER",
        "cold/learn PSER W=5, 64 streams": "1M of 64 streams, cold caches, PSER W=5",
        "cold-10m/learn PER": "10M, cold caches, PER",
        "cold-10m/learn PSER W=5": "10M, cold caches, PSER W=5",
    }
    lines += _table(
        ["`PriorityIndex`, further settings", "µs"],
        [[label, _cell(numbers, case, OURS)] for case, label in more.items() if numbers.has(case, OURS)],
    )
    memory_cases = {f"memory/{key}": label for key, label in {**LEARN, **PARTS}.items()}
    lines += ["## Whole transitions: `ReplayMemory`, 1M transitions", ""]
    lines += ["Observations of 4 float32, an integer action, reward, next observation, flags.", ""]
    lines += _times_table(measured, memory_cases, modules)
    lines += _times_table(
        measured, {"memory/add": "add, 1 environment", "vector/add": "add, 64 environments"}, modules
    )
    lines += ["## Sequences: 32 windows of 40 steps, 1M transitions", ""]
    lines += _times_table(measured, {"sequences/learn": "learn", "sequences/sample": "sample"}, modules)
    lines += ["## stable-baselines3's algorithms: a gradient step", ""]
    lines += _table(
        ["", "its own class, µs", "prioritized, µs", "ratio"],
        [
            [
                name,
                _cell(numbers, f"train/{name} stock", SB3),
                _cell(numbers, f"train/{name}", SB3),
                f"{numbers.ratio((f'train/{name}', SB3), (f'train/{name} stock', SB3)):.3f}×",
            ]
            for name in ("DQN", "QRDQN", "DDPG", "TD3", "SAC", "TQC")
            if numbers.has(f"train/{name}", SB3) and numbers.has(f"train/{name} stock", SB3)
        ],
    )
    lines += ["## Stacked frames", ""]
    rows = []
    for module in [*modules, COPY]:
        if numbers.has("atari/sample", module):
            held = f"{measured.resident_bytes[module]:,.0f}" if module != COPY else "–"
            rows.append([measured.peers[module]["name"], _cell(numbers, "atari/sample", module), held])
    lines += _table(["", "batch of 32, µs", "resident bytes per transition"], rows)

    lines += ["## Frames of real games, played at random and by a partly trained policy", ""]
    lines += _table(
        ["", "plain, µs", "compressed, µs", "ratio", "plain, bytes", "compressed, bytes"],
        [
            [
                game,
                _cell(numbers, f"plain {game}/sample", OURS),
                _cell(numbers, f"compressed {game}/sample", OURS),
                f"{numbers.ratio((f'compressed {game}/sample', OURS), (f'plain {game}/sample', OURS)):.2f}×",
                f"{measured.game_bytes[f'plain {game}'][OURS]:,.0f}",
                f"{measured.game_bytes[f'compressed {game}'][OURS]:,.0f}",
            ]
            for game in PLAYED
            if numbers.has(f"compressed {game}/sample", OURS)
        ],
    )
    lines += _table(
        ["compressed, beside TorchRL's", "pser, µs", "TorchRL, µs", "pser, bytes", "TorchRL, bytes"],
        [
            [
                game,
                *(_cell(numbers, f"compressed {game}/sample", module) for module in (OURS, COMPRESSED)),
                *(
                    f"{measured.game_bytes[f'compressed {game}'][module]:,.0f}"
                    for module in (OURS, COMPRESSED)
                ),
            ]
            for game in COMPRESSED_BESIDE
            if all(numbers.has(f"compressed {game}/sample", module) for module in (OURS, COMPRESSED))
        ],
    )
    scores = json.loads(SCORES.read_text())
    lines += _table(
        ["points in 1,000 steps", *scores],
        [[how, *(f"{score[how]:,.1f}" for score in scores.values())] for how in ("random", "trained")],
    )
    lines += [
        "## How it is measured",
        "",
        HOW.format(**run["settings"], cold=REPEATS, wall=statistics.median(measured.wall_over_cpu)),
    ]
    lines += ["", "## What differs", ""]
    lines += [f"- {peer['name']}: {note}" for peer in measured.peers.values() for note in peer["notes"]]
    lines += ["", "## Versions", ""]
    for module, peer in measured.peers.items():
        if module != COPY:
            versions = ", ".join(f"{name} {version}" for name, version in peer["versions"].items())
            lines.append(f"- {peer['name']}: Python {peer['python']}, {versions}")
    lines += [
        "",
        "## Repeating it",
        "",
        "`make bench` makes three environments, `.venv-bench` and two whose names end in `-torchrl` and `-jax` "
        "(versions in `benchmarks/constraints*.txt`), builds this project into"
        " the first, and writes this page and `benchmarks.json`, which has every repetition. It needs "
        "Linux, about 8 GB of disk and 14 GB of memory. `python3 -m benchmarks.run --quick` is a one-"
        "minute version that writes to `build/bench-quick`; `--only ours tianshou` picks libraries. A "
        "library is one file in `benchmarks/peers` and one line in `benchmarks/peer.py`.",
        "",
    ]
    return "\n".join(lines)


def as_json(measured: Measurements, run: dict[str, Any]) -> dict[str, Any]:
    """The same as data, with every repetition."""
    return {
        **run,
        "peers": measured.peers,
        "targets": [vars(verdict) for verdict in verdicts(measured)],
        "resident_bytes_per_transition": measured.resident_bytes,
        "resident_bytes_of_games": measured.game_bytes,
        "wall_over_cpu_median": statistics.median(measured.wall_over_cpu),
        "not_measured": measured.failures,
        "times_us": {
            case: {module: [round(value, 4) for value in values] for module, values in by_module.items()}
            for case, by_module in measured.times_us.items()
        },
    }
