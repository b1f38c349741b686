"""Keep the small records of a sweep: copy them, write a table and a report.

    python results/collect.py SWEEP_FOLDER results/minatar

Only finished runs are taken; with the same folder twice, table and report are written anew. Checkpoints, snapshots and
TensorBoard events stay where they are; the manifests lose the folder the runs were made in and the name of the system.
"""

import argparse
import json
import platform
import shutil
from pathlib import Path
from statistics import mean
from textwrap import fill

from pser.analysis import markdown
from pser.analysis.published import published_figures
from pser.analysis.report.build import ReportSettings, build_report
from pser.analysis.report.words import pair_sentence
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
PUBLISHED_AS = {"uniform": "Uniform", "PER": "PER_MaxPrio"}
PUBLISHED_NOTE = (
    "*Published*: what others report for the same game after as many frames, {what} ({spread}). What differs there: "
    "{differs}. So it tells the range to expect of a *training* return, and is no level to equal."
)
PAGE = """# {title}

Records of real runs, made with

```
{command}
```

and kept by `python results/collect.py SWEEP_FOLDER {here}`. Preset `{preset}`, {frames:,} frames a run.

![learning curves](report_figures/learning_curves.png)

*Training return*: mean return of the games finished in the last {last:,} frames, with exploration. *Evaluation*: mean
return of {episodes} episodes at ε = {epsilon}, the last one and the best one of the run (the best is chosen by its own
luck, so a little too high). *Re-evaluated*: the best snapshot over fresh episodes (`pser evaluate`). Each is the mean
over seeds; brackets hold the lowest and the highest seed.
{source}
{table}

What the seeds allow to say, by the last evaluation ({test}):

{verdicts}

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
    """Mean [lowest, highest]."""
    return f"{mean(values):.2f} [{min(values):.2f}, {max(values):.2f}]" if values else ""


def published(env, label, frames):
    """What others report of the game after as many frames: mean ± their standard error or range."""
    for figures in published_figures(env):
        if PUBLISHED_AS.get(figures.agent) == label and frames in figures.frames:
            at = figures.frames.tolist().index(frames)
            spread = figures.high[at] - figures.mean[at]
            return f"{figures.mean[at]:.2f} ± {spread:.2f} ({figures.runs[at]} seeds)"
    return ""


def copy_run(run, target, sweep):
    """Copy a run's records; its manifest is returned."""
    target.mkdir(parents=True, exist_ok=True)
    for name in RECORDS:
        if (run / name).exists() and run != target:
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
    frames, evaluation = manifest["settings"]["run"]["budget_frames"], manifest["settings"]["evaluation"]
    lines = [
        [env, label, str(len(found[0])), *map(summary, found.values()), published(env, label, frames)]
        for (env, label), found in sorted(groups.items())
    ]
    is_published = any(line[-1] for line in lines)
    header = [*COLUMNS, "published training return"]
    table = markdown.table(
        header if is_published else header[:-1], [line if is_published else line[:-1] for line in lines]
    )
    report = build_report([here], ReportSettings())
    notes = [
        PUBLISHED_NOTE.format(what=x.what, spread=x.spread, differs="; ".join(x.differs))
        for x in report.sources()
    ]
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
        source="".join(f"\n{fill(note, 120)}\n" for note in notes) if is_published else "",
        table=table,
        test=f"permutation test, corrected for {len(report.comparison.pairs)} comparisons",
        verdicts="\n".join(f"- {markdown.escape(str(pair_sentence(p)))}" for p in report.comparison.pairs),
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
