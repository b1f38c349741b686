"""Studies and records made up for tests."""

from pser.learner.settings_json import to_json
from pser.studies.record import Record
from pser.studies.study import Arm, Contrast, Game, Planned, Study

SMALL = {
    "budget_frames": 60,
    "log_period_frames": 10,
    "warmup_steps": 20,
    "capacity": 100,
    "batch_size": 4,
    "hidden": (8,),
    "eval_period_frames": 0,
    "tensorboard": False,
}


def small_study(seeds=2, **changes):
    """Two arms on two games, a second of training each."""
    declared = {
        "name": "small",
        "question": "Which is better?",
        "arms": (
            Arm(name="uniform", about="uniform replay", settings={"replay": "uniform"}),
            Arm(name="pser", about="PSER", settings={"replay": "pser"}),
        ),
        "games": (Game(env="gym:CartPole-v1"), Game(env="gym:pser/OnlineCliffwalk6-v0", take_off=0.5)),
        "seeds": seeds,
        "settings": SMALL,
        "contrasts": (Contrast(arm="pser", against="uniform", asks="Is PSER better?"),),
        "stopping": "after the seeds",
        "core_hours": 0.1,
    }
    return Study(**{**declared, **changes})


def record(study, game, arm, seed, level, **changes):
    """A run whose every game returned `level`."""
    run = Planned(game, arm, seed)
    frames = [10, 20, 30, 40, 50, 60]
    made = {
        "study": study.name,
        "env": game.env,
        "arm": arm.name,
        "seed": seed,
        "settings": to_json(study.settings_of(run)),
        "preset": "classic",
        "command": "pser study small",
        "commit": "0123456789abcdef",
        "versions": {"python": "3.11"},
        "machine": {"processor": "some", "cores": 2},
        "started": "2026-01-01T00:00:00+00:00",
        "cpu_seconds": 3600.0,
        "final": {"frames": 60, "steps": 60, "updates": 40, "episodes": 6},
        "train": {"frames": frames, "return_count": [1] * 6, "return_mean": [level] * 6},
        "eval": {},
    }
    return run.path, Record(**{**made, **changes})


def records(study, levels, **changes):
    """One record a seed: `levels` maps an arm to its values, the same on every game."""
    return dict(
        record(study, game, arm, seed, level, **changes)
        for game in study.games
        for arm in study.arms
        for seed, level in enumerate(levels.get(arm.name, ()))
    )
