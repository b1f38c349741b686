"""SAC and TD3 of stable-baselines3 with uniform replay, PER and PSER: a record for each run, and a table of them.

python results/continuous/run.py                     # 60 runs; those whose record is there are not repeated
python results/continuous/run.py --max-minutes 30    # stops between two runs; the same command goes on later
python results/continuous/run.py --table             # README.md, from the records

It needs the extras `sb3` and `mujoco`: pip install -e ".[sb3,mujoco]". A run that was killed begins again; a finished
one is never run twice. Runs are in one thread each, `--jobs` at a time.

The networks are smaller than SB3's (two layers of 64 units in place of 256, or 400 and 300) and batches have 128 rows
in place of 256: a step of training then costs less than half. Tried with uniform replay, one seed each: SAC came to
the usual level of Pendulum in 4,000 steps and of InvertedDoublePendulum in 17,500, TD3 in 7,000 and in 30,000.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "records"
ALGORITHMS = ("SAC", "TD3")
REPLAYS = ("uniform", "per", "pser")
SEEDS = (0, 1, 2, 3, 4)
EVALUATIONS, EVALUATION_EPISODES = 10, 3
"""On the way: so many times, so many episodes each."""
EPISODES = 20
"""At the end; their mean return is the score of a run."""
SHARED: dict[str, Any] = {"batch_size": 128, "policy_kwargs": {"net_arch": [64, 64]}}
"""What differs from SB3's defaults in every run."""

TASKS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {
        "steps": 10_000,
        "SAC": {"learning_rate": 1e-3},
        "TD3": {"learning_rate": 1e-3, "learning_starts": 1_000, "noise": 0.1},
        "usual": "-157 with SAC, -152 with TD3 (RL Baselines3 Zoo, 20,000 steps, one run each)",
    },
    "InvertedDoublePendulum-v5": {
        "steps": 40_000,
        "SAC": {"learning_rate": 1e-3, "learning_starts": 1_000},
        "TD3": {"learning_rate": 1e-3, "learning_starts": 1_000, "noise": 0.1},
        "usual": "9,337 with TD3 (Fujimoto et al. 2018, a million steps): 9,300 and more once it balances",
    },
}
"""Task → steps, what differs from SB3's defaults, and the level that others reach."""


def rule(replay: str) -> Any:
    """The prioritization of a run; β goes from 0.4 to 1."""
    import pser

    return {"uniform": pser.Uniform(), "per": pser.PER(), "pser": pser.PSER()}[replay]


def train(task: str, algorithm: str, replay: str, seed: int, steps: int) -> dict[str, Any]:
    """One run: greedy evaluations on the way, and a longer one at its end."""
    import gymnasium as gym
    import torch
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    import pser
    from pser.integrations import sb3

    torch.set_num_threads(1)
    settings = {**SHARED, **TASKS[task][algorithm]}
    noise = settings.pop("noise", None)
    env, judge = Monitor(gym.make(task)), Monitor(gym.make(task))
    if noise is not None:
        size = env.action_space.shape or ()
        settings["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, noise))
    beta = pser.Anneal(start=0.4, end=1.0, steps=steps)
    model = getattr(sb3, algorithm)(
        "MlpPolicy",
        env,
        replay_buffer_kwargs={"prioritization": rule(replay), "beta": beta},
        seed=seed,
        device="cpu",
        **settings,
    )
    judge.reset(seed=10_000 + seed)
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as logs
    ):  # EvalCallback keeps its results only if it may also write them
        callback = EvalCallback(
            judge,
            n_eval_episodes=EVALUATION_EPISODES,
            eval_freq=max(steps // EVALUATIONS, 1),
            log_path=logs,
            verbose=0,
        )
        model.learn(steps, callback=callback)
    seconds = time.monotonic() - begin
    returns, _ = evaluate_policy(model, judge, n_eval_episodes=EPISODES, return_episode_rewards=True)
    return {
        "task": task,
        "algorithm": algorithm,
        "replay": replay,
        "seed": seed,
        "steps": steps,
        "settings": {**SHARED, **TASKS[task][algorithm]},
        "prioritization": repr(rule(replay)),
        "evaluation_steps": [int(step) for step in callback.evaluations_timesteps],
        "evaluations": [float(np.mean(row)) for row in callback.evaluations_results],
        "final_return": float(np.mean(returns)),
        "final_episodes": EPISODES,
        "memory": {key: float(value) for key, value in model.replay_buffer.index.stats().items()},
        "seconds": round(seconds, 1),
        "versions": {
            name: version(name) for name in ("pser", "stable-baselines3", "torch", "gymnasium", "numpy")
        },
    }


def path_of(folder: Path, task: str, algorithm: str, replay: str, seed: int) -> Path:
    """Where the record of a run is."""
    return folder / f"{task}-{algorithm}-{replay}-{seed}.json"


def write(path: Path, record: dict[str, Any]) -> None:
    """A whole record or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(record) + "\n", encoding="utf-8")
    part.replace(path)


def run_all(options: argparse.Namespace) -> None:
    """Every run whose record is missing, each in a process of its own."""
    runs = itertools.product(options.seeds, options.tasks, ALGORITHMS, REPLAYS)
    missing = [
        (task, algorithm, replay, seed)
        for seed, task, algorithm, replay in runs
        if not path_of(options.records, task, algorithm, replay, seed).exists()
    ]
    print(f"{len(missing)} runs to do", flush=True)
    begin, ended, longest, lock = time.monotonic(), 0, 0.0, threading.Lock()

    def one(run: tuple[str, str, str, int]) -> None:
        nonlocal ended, longest
        began = time.monotonic() - begin
        # None begins that may not end in time, by the longest so far.
        if options.max_minutes is not None and began + longest >= 60 * options.max_minutes:
            return
        command = [sys.executable, __file__, "--records", str(options.records), "--one", *map(str, run)]
        if options.steps:
            command += ["--steps", str(options.steps)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
        with lock:
            now = time.monotonic() - begin
            ended, longest = ended + 1, max(longest, now - began)
            print(
                f"{ended}/{len(missing)} {told(path_of(options.records, *run))}, {now / 60:.1f} min",
                flush=True,
            )

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, missing))
    if ended < len(missing):
        print(f"stopped: {len(missing) - ended} runs are left for the same command", flush=True)


def told(path: Path) -> str:
    """A finished run in one line."""
    record = json.loads(path.read_text(encoding="utf-8"))
    return f"{path.stem}: {record['final_return']:.1f} in {record['seconds']:.0f} s"


def table(folder: Path) -> str:
    """The page: median and mean over seeds, the lowest and the highest, and what the seeds allow to say."""
    from pser.analysis.statistics.permutation import permutation_p_value

    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    scores: dict[tuple[str, str, str], dict[int, float]] = {}
    for record in records:
        key = record["task"], record["algorithm"], record["replay"]
        scores.setdefault(key, {})[record["seed"]] = record["final_return"]
    lines = [
        "| task | algorithm | replay | seeds | median return | mean [lowest, highest] | against uniform |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for task, algorithm, replay in itertools.product(TASKS, ALGORITHMS, REPLAYS):
        by_seed = scores.get((task, algorithm, replay), {})
        if not by_seed:
            continue
        values, base = list(by_seed.values()), scores.get((task, algorithm, "uniform"), {})
        against = "–"
        if replay != "uniform" and len(base) > 1 and len(values) > 1:
            rows = [np.array(values)], [np.array(list(base.values()))]
            against = f"p = {permutation_p_value(*rows, np.random.default_rng(0)):.2f}"
        spread = f"{np.mean(values):.1f} [{min(values):.1f}, {max(values):.1f}]"
        middle = f"{np.median(values):.1f}"
        lines.append(f"| {task} | {algorithm} | {replay} | {len(values)} | {middle} | {spread} | {against} |")
    planned = len(TASKS) * len(ALGORITHMS) * len(REPLAYS) * len(SEEDS)
    usual = "\n".join(f"- {name}: {task['usual']}" for name, task in TASKS.items())
    budgets = ", ".join(f"{name}: {task['steps']:,} steps" for name, task in TASKS.items())
    return f"""# SAC and TD3 on continuous tasks: uniform, PER and PSER

Records of real runs, made by `python results/continuous/run.py` (settings in it) and kept in `records/`. The score
of a run is the mean return of {EPISODES} greedy episodes after its last step. p: permutation test over seeds, not
corrected for the number of rows. {len(records)} of {planned} runs so far.

{budgets}.
Networks have two layers of 64 units and batches 128 rows, fewer than SB3's defaults, for all three
kinds of replay alike: so that 60 runs can be made on one core in an afternoon. Numbers are to be compared with each
other first, and with those of larger networks only loosely.

{chr(10).join(lines)}

Levels that others reach:

{usual}
"""


def main() -> None:
    """Run what is missing, or one, or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--max-minutes", type=float, help="begin no run that may end later")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--steps", type=int, help="another budget, to try it out")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--table", action="store_true", help="write README.md from the records")
    parser.add_argument(
        "--one", nargs=4, metavar=("TASK", "ALGORITHM", "REPLAY", "SEED"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.one:
        task, algorithm, replay, seed = options.one
        record = train(task, algorithm, replay, int(seed), options.steps or TASKS[task]["steps"])
        write(path_of(options.records, task, algorithm, replay, int(seed)), record)
    elif not options.table:
        run_all(options)
    if options.table:
        (options.records.parent / "README.md").write_text(table(options.records), encoding="utf-8")


if __name__ == "__main__":
    main()
