"""Copy the small records of a MinAtar sweep here and write README.md from them.

    python results/minatar/collect.py SWEEP_FOLDER

Only finished runs are taken. Checkpoints, snapshots and TensorBoard events stay where they are.
"""

import json
import shutil
import sys
from pathlib import Path
from statistics import mean, stdev

HERE = Path(__file__).parent
RECORDS = ("manifest.json", "train.jsonl", "eval.jsonl", "status.json", "final.json")
LAST_FRAMES = 50_000
PUBLISHED = {
    "minatar:breakout": {"Uniform": "9.4 ± 0.3", "PER_MaxPrio": "8.9 ± 0.7"},
}
INTRODUCTION = """# MinAtar: uniform, PER and PSER

Records of real runs, made with

```
{command}
```

and copied here by `python results/minatar/collect.py SWEEP_FOLDER`. Preset `minatar` (docs/training.md lists how it
differs from the published set-up): an update per {period}, all six actions, sticky actions 0.1, {frames:,} frames.

*Training return*: mean return of the games finished in the last {last:,} frames, ε = 0.1. *Evaluation*: mean return
of 30 episodes at ε = 0.001, the last one and the best one of the run. *Published*: training level after **5,000,000**
frames with an update per frame (5 seeds, mean ± standard error), that is {ratio:.0f} times the frames and {updates:.0f}
times the updates of these runs: a level to approach from below, not one to equal. ± is the standard error over seeds.

| game | replay | seeds | training return | last evaluation | best evaluation | published |
|---|---|---|---|---|---|---|
"""


def rows(path):
    """The lines of a record."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def training_return(lines):
    """Mean return of the games finished in the last frames of the run."""
    tail = [
        line for line in lines if line["frames"] > lines[-1]["frames"] - LAST_FRAMES and line["return_count"]
    ]
    total = sum(line["return_mean"] * line["return_count"] for line in tail)
    return total / sum(line["return_count"] for line in tail)


def with_error(values):
    """Mean ± standard error."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{error}"


def main(sweep):
    """Collect the finished runs and write the page."""
    groups = {}
    for status in sorted(sweep.glob("*/*/seed-*/status.json")):
        run = status.parent
        if json.loads(status.read_text())["state"] != "finished":
            print(f"{run} is not finished and was left out")
            continue
        target = HERE / run.relative_to(sweep)
        target.mkdir(parents=True, exist_ok=True)
        for name in RECORDS:
            if (run / name).exists():
                shutil.copyfile(run / name, target / name)
        manifest = json.loads((run / "manifest.json").read_text())
        evaluations = [line["mean_return"] for line in rows(run / "eval.jsonl")]
        found = (training_return(rows(run / "train.jsonl")), evaluations[-1], max(evaluations))
        groups.setdefault((manifest["env"], manifest["label"]), []).append((found, manifest))
    if not groups:
        sys.exit("no finished run: let the sweep go on")
    lines = []
    for (env, label), runs in sorted(groups.items()):
        cells = [with_error([found[column] for found, _ in runs]) for column in range(3)]
        published = PUBLISHED.get(env, {}).get(label, "")
        lines.append(f"| {env} | {label} | {len(runs)} | {' | '.join(cells)} | {published} |\n")
    settings = next(iter(groups.values()))[0][1]["settings"]
    frames, period = settings["run"]["budget_frames"], settings["agent"]["update_period_steps"]
    envs = " ".join(sorted({env for env, _ in groups}))
    command = f"pser sweep --envs {envs} --replay uniform per pser --seeds 0 1 2 --frames {frames} --out SWEEP_FOLDER"
    page = INTRODUCTION.format(
        command=command,
        frames=frames,
        period="frame" if period == 1 else f"{period} frames",
        last=LAST_FRAMES,
        ratio=5e6 / frames,
        updates=5e6 / frames * period,
    )
    (HERE / "README.md").write_text(page + "".join(lines))
    print((HERE / "README.md").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
