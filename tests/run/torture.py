"""Kill trainings on three families of games with SIGKILL, many times, and hold each against one never interrupted.

    python tests/run/torture.py --kills 200

Half of the kills come at random moments, half while a checkpoint is being written. Prints a table, and fails if one
run differs in a single bit of its weights, memory, random generators or records.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from kill_and_resume import finish, kill
from same_run import differences

from pser.learner.presets import default_preset, preset_settings

SMALL = {
    "hidden": (16, 16),
    "batch_size": 8,
    "capacity": 500,
    "warmup_steps": 50,
    "budget_frames": 1_400,
    "log_period_frames": 45,
    "eval_period_frames": 300,
    "eval_frames": 0,
    "eval_episodes": 3,
    "eval_num_envs": 3,
    "checkpoint_period_frames": 70,
    "target_period_steps": 100,
    "tensorboard": False,
    "epsilon_decay_steps": 500,
    "max_episode_steps": 60,
}
VARIANTS = {
    "gym:CartPole-v1": [
        {"num_envs": 2, "n_step": 3, "initial": "td", "update_period_steps": 8},
        {"num_envs": 1, "replay": "per", "update_period_steps": 4},
    ],
    "minatar:breakout": [
        {"num_envs": 1, "update_period_steps": 8},
        {"num_envs": 3, "n_step": 3, "decay": "add", "update_period_steps": 12},
    ],
    "atari:Breakout": [
        {"num_envs": 2, "update_period_steps": 40, "checkpoint_period_frames": 140},
        {"num_envs": 1, "n_step": 3, "replay": "uniform", "update_period_steps": 40},
    ],
}
KILLS_A_RUN = 8
LATEST_SECONDS = 0.4


def torture(game, kills, folder, moments):
    """Runs, kills met, those while a checkpoint was written, and the runs that came out different."""
    runs, met, writing, wrong = 0, 0, 0, []
    straight = {}
    while met < kills:
        variant = runs % len(VARIANTS[game])
        settings = preset_settings(default_preset(game), game).override({**SMALL, **VARIANTS[game][variant]})
        if variant not in straight:
            straight[variant] = folder / f"straight-{variant}"
            if finish(straight[variant], settings):
                sys.exit(f"{game}: a run that nobody killed failed")
        path = folder / f"killed-{runs}"
        for number in range(min(KILLS_A_RUN, kills - met)):
            was_met, was_writing = kill(
                path, settings, moments, LATEST_SECONDS, while_writing=number % 2 == 1
            )
            met, writing = met + was_met, writing + was_writing
        code = finish(path, settings)
        found = differences(path, straight[variant]) if code == 0 else [f"exit code {code}"]
        if found:
            wrong.append(f"{path.name}: {', '.join(found)}")
        runs += 1
    return runs, met, writing, wrong


def main():
    """Torture each family of games, print the table, and fail on a difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="kills over all games (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    bad = []
    print(f"{'game':<18} {'runs':>5} {'kills':>6} {'while writing':>14} {'bit-identical':>14} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        for number, game in enumerate(VARIANTS):
            share = options.kills // len(VARIANTS) + (number < options.kills % len(VARIANTS))
            began = time.monotonic()
            folder = Path(scratch) / game.replace(":", "-")
            runs, met, writing, wrong = torture(game, share, folder, moments)
            seconds = time.monotonic() - began
            print(
                f"{game:<18} {runs:>5} {met:>6} {writing:>14} {runs - len(wrong):>14} {seconds:>8.0f}",
                flush=True,
            )
            bad += [f"{game} {line}" for line in wrong]
    for line in bad:
        print(f"different: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
