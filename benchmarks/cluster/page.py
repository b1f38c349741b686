"""The results as a page of the documentation, with the targets."""

from typing import Any

from benchmarks.cluster import learner, rllib, scaling, sizing_table
from benchmarks.cluster.tasks import LOCAL, OURS, PEER, TASKS
from benchmarks.machine import in_words

LEARNER = {"minatar": 1.10, "atari": 1.03}
BATCH_MS = {"minatar": 0.35, "atari": 11.0}
INGEST_TIMES, BATCH_TIMES = 4.0, 8.0
DRAW = {rllib.EPISODES: 1 / 4, rllib.COLUMNS: 1 / 50}
LEARN = 0.7
RECOVERY_SECONDS = 15.0

Check = tuple[str, str, str, bool]
"""What, target, measured, whether it is met."""


def page(results: dict[str, Any]) -> str:
    lines = [
        "# On Ray",
        "",
        "Written by `make bench-ray`. Everything ran in turns on one machine. CPU is that of all processes, Ray's own",
        "included, unless a column says otherwise; brackets are 95 % intervals. Rates depend on what else the machine",
        "does; CPU and ratios much less.",
        "",
        f"{in_words(results['machine'])}, load {results['machine']['load_average_before']:.1f} before the run. "
        f"Versions: {results['versions']}.",
        "",
        "| | target | measured | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {what} | {target} | {measured} | {'met' if met else '**missed**'} |"
        for what, target, measured, met in checks(results)
    ]
    for section in (_traffic, _learner, _scaling, _faults, _rllib, _sizing):
        lines += section(results)
    return "\n".join(lines) + "\n"


def checks(results: dict[str, Any]) -> list[Check]:
    """Those whose part was measured."""
    rows: list[Check] = []
    for task, limit in LEARNER.items():
        if "learner" in results:
            found = results["learner"][task]["times_local"][learner.AHEAD]
            shown = f"{found['median']:.3f}× {_interval(found, 3)}"
            what = f"learner's CPU per update beside in-process, {task}"
            rows.append((what, f"≤ {limit:.2f}×", shown, found["median"] <= limit))
    if "traffic" in results:
        beside = results["traffic"]["minatar"]["times_torchrl"]
        for what, key, least in (("ingest", "add", INGEST_TIMES), ("batches", "batch", BATCH_TIMES)):
            rate, cpu = beside[key]["wall"], beside[key]["cpu"]
            shown = f"{rate['median']:.1f}× {_interval(rate, 1)}; by CPU {cpu['median']:.1f}×"
            rows.append(
                (
                    f"{what} per second beside {PEER}, minatar",
                    f"≥ {least:.0f}×",
                    shown,
                    rate["median"] >= least,
                )
            )
        for task, limit in BATCH_MS.items():
            spent = 1e3 * results["traffic"][task]["seconds"][f"{OURS}: batch"]["cpu"]
            what = f"all CPU per batch, {task} {TASKS[task].batch_size}"
            rows.append((what, f"≤ {limit:g} ms", f"{spent:.2f} ms", spent <= limit))
    if "rllib" in results:
        times = results["rllib"]["times_theirs"]
        for name, limit in DRAW.items():
            found = times["draw"][name]
            shown = f"1/{1 / found['median']:.1f} {_interval(found, 4)}"
            rows.append(
                (f"RLlib, sample + update: {name}", f"≤ 1/{1 / limit:.0f}", shown, found["median"] <= limit)
            )
        found = times["learn"][rllib.COLUMNS]
        rows.append(
            (
                f"RLlib, learn step of DQN: {rllib.COLUMNS}",
                f"≤ {LEARN:.1f}×",
                f"{found['median']:.2f}× {_interval(found, 2)}",
                found["median"] <= LEARN,
            )
        )
    if "faults" in results:
        found = results["faults"]["rows"]
        name = max(found, key=lambda row: found[row]["seconds"])
        slowest = found[name]["seconds"]
        what = "a run goes on after the notice of a loss, at most"
        shown = f"{slowest:.1f} s ({name})"
        rows.append((what, f"≤ {RECOVERY_SECONDS:g} s", shown, slowest <= RECOVERY_SECONDS))
    return rows


def _interval(found: dict[str, float], digits: int) -> str:
    return f"({found['low']:.{digits}f} to {found['high']:.{digits}f})"


def _traffic(results: dict[str, Any]) -> list[str]:
    if "traffic" not in results:
        return []
    lines = [
        "",
        "## Into a memory in another process, and out of it",
        "",
        "A shard as the learner of a run on Ray drives it: batches come with a PSER update of each, which rides along",
        f"with a later call; calls are sent ahead. {PEER} waits for every call; it draws uniformly",
        "and updates nothing, since its prioritized sampler does not load with this torch.",
    ]
    for task, found in results["traffic"].items():
        lines += [
            "",
            f"### {TASKS[task].env}: chunks of {found['chunk_steps']} steps, batches of {found['batch_size']}, "
            f"{found['batches_per_call']} to a call ({found['rounds']} rounds)",
            "",
            "| | transitions/s in | CPU µs each | batches/s out | CPU ms each |",
            "|---|---|---|---|---|",
        ]
        for name in (LOCAL, OURS, PEER):
            add, batch = (found["seconds"][f"{name}: {what}"] for what in ("add", "batch"))
            lines.append(
                f"| {name} | {1 / add['wall']:,.0f} | {1e6 * add['cpu']:.1f} | {1 / batch['wall']:,.0f} "
                f"| {1e3 * batch['cpu']:.3f} |"
            )
    return lines


def _learner(results: dict[str, Any]) -> list[str]:
    if "learner" not in results:
        return []
    lines = [
        "",
        "## A learner fed by a shard",
        "",
        "The preset's network learns from batches of 32; only where they come from differs.",
        "",
        "| | learner's CPU ms per update | × in-process | all CPU ms |",
        "|---|---|---|---|",
    ]
    for task, found in results["learner"].items():
        for name, spent in found["seconds"].items():
            times = found["times_local"].get(name)
            shown = "1" if times is None else f"{times['median']:.3f} {_interval(times, 3)}"
            label = f"{name} ({found['batches_per_call']} batches a call)" if name == learner.AHEAD else name
            lines.append(
                f"| {TASKS[task].env}, {label} | {1e3 * spent['own']:.3f} | {shown} | {1e3 * spent['cpu']:.3f} |"
            )
    return lines


def _scaling(results: dict[str, Any]) -> list[str]:
    if "scaling" not in results:
        return []
    found = results["scaling"]
    lines = [
        "",
        "## A run with more and more actors",
        "",
        f"MinAtar Breakout, {found['envs_per_actor']} environment an actor, batches of {found['batch_size']}, "
        f"{found['samples_per_insert']} sample per insert, one shard; all on {found['cores']} cores. CPU in µs per",
        "step played.",
        "",
        "| actors | steps/s here | learner | actors | shard | Ray | all |",
        "|---|---|---|---|---|---|---|",
    ]
    for actors, row in found["rows"].items():
        parts = [1e6 * row[part] for part in ("learner", "actors", "shards", "ray")]
        cells = " | ".join(f"{value:.0f}" for value in (*parts, sum(parts)))
        lines.append(f"| {actors} | {row['steps_per_second']:,.0f} | {cells} |")
    if "traffic" in results:
        costs = sizing_table.costs_of(results, "minatar")
        lines += [
            "",
            "What the model makes of the run with two actors (**a model**, not a measurement): steps a second with a",
            "core for every process, and what they are held up by. With the cores there are here it says "
            f"{scaling.shared_rate(found, costs):,.0f}.",
            "",
            "| actors | steps/s | held up by |",
            "|---|---|---|",
        ]
        lines += [
            f"| {actors} | {rate.steps_per_second:,.0f} | {rate.limit} |"
            for actors, rate in scaling.model_of(found, costs)
        ]
    return lines


def _faults(results: dict[str, Any]) -> list[str]:
    if "faults" not in results:
        return []
    found = results["faults"]
    lines = [
        "",
        "## What a loss costs",
        "",
        f"CartPole, a snapshot every {found['period']:,} frames; killed by SIGKILL shortly before the next one, unless",
        "it says otherwise. Wall time from the notice (Ray tells the learner; Ray begins a sweep's run again; a person",
        "types `--resume`, on a cluster that is there) until the next chunk, batch or row of the records. *Lost*:",
        "steps that are gone from the memory, or are played again.",
        "",
        "| killed | s until it went on | steps lost |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {row['seconds']:.1f} | {row['lost']:,} |" for name, row in found["rows"].items()]
    return lines


def _rllib(results: dict[str, Any]) -> list[str]:
    if "rllib" not in results:
        return []
    found = results["rllib"]
    lines = [
        "",
        f"## RLlib's DQN, batches of {rllib.BATCH}",
        "",
        f"Buffers of {rllib.CAPACITY:,} transitions of CartPole's shape. *Learn step*: sample, `Learner.update`,",
        "update of the priorities. CPU of this process.",
        "",
        f"| | sample + update, ms | × {rllib.THEIRS} | learn step, ms | × {rllib.THEIRS} |",
        "|---|---|---|---|---|",
    ]
    for name in (rllib.THEIRS, rllib.EPISODES, rllib.COLUMNS):
        cells = []
        for what, digits in (("draw", 4), ("learn", 2)):
            times = found["times_theirs"][what].get(name)
            shown = "1" if times is None else f"{times['median']:.{digits}f} {_interval(times, digits)}"
            cells += [f"{1e3 * found['seconds'][f'{name}: {what}']:.3f}", shown]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _sizing(results: dict[str, Any]) -> list[str]:
    if "traffic" not in results:
        return []
    return [
        "",
        "## What one shard carries (a model)",
        "",
        "The costs above put into `pser.cluster.sizing` ([how it reckons](cluster.md#how-large)).",
        "",
        *sizing_table.table(results),
    ]
