"""Run folders as the trainer writes them, with made-up learning: a saturating return plus seeded noise."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LABELS = {"pser": "PSER_MaxPrio_MAX", "per": "PER_MaxPrio", "uniform": "Uniform"}


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """What the made-up run looks like."""

    env: str = "minatar:breakout"
    replay: str = "pser"
    label: str | None = None
    seed: int = 0
    level: float = 10.0
    """The return the run ends near."""
    noise: float = 0.5
    frames: int = 500_000
    points: int = 20
    state: str = "finished"
    error: str | None = None
    settings: dict | None = None
    evaluations: bool = True
    final: bool = False


def write_run(folder: Path, run: Synthetic) -> Path:
    """Write one run folder and return it."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng([run.seed, len(run.env), sum(run.replay.encode())])
    _dump(folder / "manifest.json", _manifest(folder, run))
    _dump(folder / "status.json", {"state": run.state, "frames": run.frames, "error": run.error})
    frames = np.linspace(0, run.frames, run.points + 1)[1:].astype(int)
    _lines(folder / "train.jsonl", [_train_row(run, rng, f, i) for i, f in enumerate(frames)])
    if run.evaluations:
        rows, best, chosen = [], -np.inf, 0
        for f in frames:
            value = _return(run, rng, f)
            rows.append(_eval_row(int(f), value, best=value > best))
            chosen = int(f) if value > best else chosen
            best = max(best, value)
        _lines(folder / "eval.jsonl", rows)
    if run.final:
        returns = [round(run.level + float(x), 3) for x in rng.normal(0, run.noise, 20)]
        final = {"episodes": 20, "mean_return": float(np.mean(returns)), "std_return": float(np.std(returns))}
        snapshot = {"snapshot": "best", "snapshot_frames": chosen, "epsilon": 0.001, "seed": 0}
        _dump(folder / "final.json", {**final, "returns": returns, **snapshot})
    return folder


def write_sweep(
    root: Path, envs=("minatar:breakout",), replays=("pser", "per", "uniform"), seeds=3, shift=0, **more
) -> Path:
    """A sweep in which PSER ends a little above PER, and PER above uniform; `shift` gives other seeds."""
    levels = {"pser": 12.0, "per": 10.0, "uniform": 8.0}
    for env in envs:
        for replay in replays:
            for seed in range(shift, shift + seeds):
                run = Synthetic(env=env, replay=replay, seed=seed, level=levels[replay], **more)
                write_run(root / env.replace(":", "-") / f"{replay}-{seed}", run)
    return root


def _manifest(folder: Path, run: Synthetic) -> dict:
    replay = {"replay": run.replay, "alpha": 0.6, "rho": 0.4, **(run.settings or {})}
    return {
        "format": 1,
        "settings": {"game": {"env": run.env, "num_envs": 8}, "replay": replay, "run": {"seed": run.seed}},
        "env": run.env,
        "replay": run.replay,
        "label": run.label or LABELS[run.replay],
        "seed": run.seed,
        "preset": "minatar",
        "command": f"pser train {run.env} --replay {run.replay} --seed {run.seed} --run-dir {folder.name}",
        "versions": {"python": "3.11.2", "pser": "0.1.0", "numpy": "2.4.6"},
        "commit": None,
        "machine": {"platform": "Linux", "processor": "test", "cores": 2},
        "started": "2024-05-17T12:00:00+00:00",
    }


def _return(run: Synthetic, rng: np.random.Generator, frames: float) -> float:
    return float(run.level * (1 - np.exp(-5 * frames / run.frames)) + rng.normal(0, run.noise))


def _eval_row(frames: int, value: float, *, best: bool) -> dict:
    spread = {"std_return": 1.0, "min_return": value - 2, "max_return": value + 2}
    return {
        "frames": frames, "episodes": 10, "mean_return": value, "median_return": value,
        **spread, "mean_length": 100.0, "best": best,
    }  # fmt: skip


def _train_row(run: Synthetic, rng: np.random.Generator, frames: int, index: int) -> dict:
    progress = frames / run.frames
    decayed = 0.4 * progress if run.replay == "pser" else 0.0
    size = min(int(frames), 100_000)
    memory = {
        "size": size,
        "capacity": 100_000,
        "added": int(frames),
        "total_mass": 10.0,
        "max_priority": 1.0 + progress,
        "effective_sample_size": size * (1.0 if run.replay == "uniform" else 0.8 - 0.3 * progress),
        "decayed_share": decayed,
        "decayed_mass_seen": 100.0 * decayed,
        "decayed_mass_lost": 30.0 * decayed,
        "collapse": 0.3 if decayed else 0.0,
        "age_mean": 40_000.0,
        "age_median": 38_000.0,
        "replays_mean": 8.0,
        "replays_max": 100,
        "never_replayed_share": 0.1 * (1 - progress),
        "mass_from_insertion": 0.2,
        "mass_from_retention": 0.3,
        "mass_from_td_error": 0.4,
        "mass_from_decay": 0.1,
        "updates_applied": int(frames),
        "updates_skipped_stale": 0,
    }
    return {
        "frames": int(frames),
        "steps": int(frames),
        "updates": int(frames) // 4,
        "episodes": (index + 1) * 50,
        "return_mean": _return(run, rng, frames) * 0.9,
        "return_count": 50,
        "length_mean": 100.0,
        "epsilon": max(0.01, 1 - progress),
        "loss": None if index == 0 else 0.5 * float(np.exp(-progress)),
        "q_mean": None if index == 0 else 2.0 * progress,
        "td_abs_mean": None if index == 0 else 0.3,
        "beta": None if run.replay == "uniform" else 0.5,
        "frames_per_second": 1500.0 + float(rng.normal(0, 50)),
        "memory": memory,
    }


def _dump(path: Path, document: dict) -> None:
    path.write_text(json.dumps(document) + "\n")


def _lines(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
