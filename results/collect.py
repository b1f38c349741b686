"""Keep the small records of a sweep: copy them, write a table and a report.

    python results/collect.py SWEEP_FOLDER results/minatar

Only finished runs are taken. Checkpoints, snapshots and TensorBoard events stay where they are; the manifests lose
the folder the runs were made in and the name of the system.
"""

import argparse
import json
import platform
import shutil
from pathlib import Path
from statistics import mean, stdev

from pser.cli import main as pser

RECORDS = ("train.jsonl", "eval.jsonl", "status.json", "final.json")
COLUMNS = (
    "game",
    "replay",
    "seeds",
    "training return",
    "last evaluation",
    "best evaluation",
    "re-evaluated",
)
LAST_SHARE = 0.1
PUBLISHED_FRAMES = 5_000_000
PUBLISHED = {"minatar:breakout": {"Uniform": "9.4 ± 0.3", "PER_MaxPrio": "8.9 ± 0.7"}}
PUBLISHED_SOURCE = """
*Published*: return after **{published:,}** frames with an update per frame (shivakanthsujit/reducible-loss,
MinAtar 1.0.10, 5 seeds, mean ± standard error), that is {ratio:.0f} times the frames of these runs: a level to approach
from below, not one to equal.
"""
PAGE = """# {title}

Records of real runs, made with

```
{command}
```

and kept by `python results/collect.py SWEEP_FOLDER {here}`. Preset `{preset}`, {frames:,} frames a run.

![learning curves](report_figures/learning_curves.png)

*Training return*: mean return of the games finished in the last {last:,} frames, with exploration. *Evaluation*: mean
return of {episodes} episodes at ε = {epsilon}, the last one and the best one of the run (the best is chosen by its own
luck, so a little too high). *Re-evaluated*: the best snapshot over fresh episodes (`pser evaluate`). ± is the standard
error over seeds, brackets hold the lowest and the highest seed.
{source}
{table}
[report.md](report.md), written by `pser report`, compares them and shows the priorities.
"""


def rows(path):
    """The lines of a record."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def training_return(lines, last_frames):
    """Mean return of the games finished in the last frames of the run."""
    since = lines[-1]["frames"] - last_frames
    tail = [line for line in lines if line["frames"] > since and line["return_count"]]
    total = sum(line["return_mean"] * line["return_count"] for line in tail)
    return total / sum(line["return_count"] for line in tail)


def summary(values):
    """Mean ± standard error [lowest, highest]."""
    if not values:
        return ""
    error = f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{error} [{min(values):.2f}, {max(values):.2f}]"


def copy_run(run, target, sweep):
    """Copy a run's records; its manifest is returned."""
    target.mkdir(parents=True, exist_ok=True)
    for name in RECORDS:
        if (run / name).exists():
            shutil.copyfile(run / name, target / name)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["command"] = manifest["command"].replace(str(sweep), "SWEEP_FOLDER")
    manifest["machine"]["platform"] = f"{platform.system()} {platform.machine()}"
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def collect(sweep, here):
    """Copy the finished runs; (game, label) → what each run reached, and one of the manifests."""
    groups, manifest = {}, None
    for status in sorted(sweep.glob("*/*/seed-*/status.json")):
        run = status.parent
        if json.loads(status.read_text())["state"] != "finished":
            print(f"{run} is not finished and was left out")
            continue
        manifest = copy_run(run, here / run.relative_to(sweep), sweep)
        lines = rows(run / "train.jsonl")
        scores = [line["mean_return"] for line in rows(run / "eval.jsonl")]
        final = (
            [json.loads((run / "final.json").read_text())["mean_return"]]
            if (run / "final.json").exists()
            else []
        )
        found = groups.setdefault((manifest["env"], manifest["label"]), {column: [] for column in range(4)})
        last_frames = LAST_SHARE * lines[-1]["frames"]
        for column, values in enumerate(
            ([training_return(lines, last_frames)], [scores[-1]], [max(scores)], final)
        ):
            found[column] += values
    return groups, manifest


def write_page(groups, manifest, here, title):
    """README.md of the folder."""
    envs = sorted({env for env, _ in groups})
    is_published = any(env in PUBLISHED for env in envs)
    table = [[*COLUMNS, "published"], ["---"] * (len(COLUMNS) + 1)]
    for (env, label), found in sorted(groups.items()):
        cells = [summary(values) for values in found.values()]
        table.append([env, label, str(len(found[0])), *cells, PUBLISHED.get(env, {}).get(label, "")])
    lines = ["| " + " | ".join(row if is_published else row[:-1]) + " |\n" for row in table]
    settings = manifest["settings"]
    frames, evaluation = settings["run"]["budget_frames"], settings["evaluation"]
    source = PUBLISHED_SOURCE.format(published=PUBLISHED_FRAMES, ratio=PUBLISHED_FRAMES / frames)
    page = PAGE.format(
        title=title,
        command=f"pser sweep --envs {' '.join(envs)} --replay uniform per pser --seeds 0 1 2 --frames {frames} "
        "--out SWEEP_FOLDER",
        here=here.as_posix(),
        preset=manifest["preset"],
        frames=frames,
        last=round(LAST_SHARE * frames),
        episodes=evaluation["eval_episodes"],
        epsilon=evaluation["eval_epsilon"],
        source=source if is_published else "",
        table="".join(lines),
    )
    (here / "README.md").write_text(page)
    print(page)


def main():
    """Collect, write the page, then the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sweep", type=Path, help="the folder given to `pser sweep --out`")
    parser.add_argument("here", type=Path, help="the folder to keep the records in")
    parser.add_argument("--title", default="Uniform, PER and PSER")
    arguments = parser.parse_args()
    groups, manifest = collect(arguments.sweep, arguments.here)
    if not groups:
        parser.exit(2, "no finished run: let the sweep go on\n")
    write_page(groups, manifest, arguments.here, arguments.title)
    report = arguments.here / "report.md"
    pser(["report", str(arguments.here), "--format", "md", "--out", str(report), "--title", arguments.title])


if __name__ == "__main__":
    main()
