"""The trainer as it is, on MinAtar with PER, of whichever version of pser this interpreter has.

    python -m benchmarks.train.plain ENVS PERIOD

Nothing of the package is used here but what every version has, so that versions can be laid side by side.
"""

import json
import os
import sys
import time
import warnings

SEGMENT_FRAMES = 400
FILL_FRAMES = 1_000


def main() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    from pser.learner.device import configure_torch
    from pser.learner.events import IntervalLogged
    from pser.learner.games import training_game
    from pser.learner.loop import Trainer
    from pser.learner.presets import preset_settings

    envs, period = int(sys.argv[1]), int(sys.argv[2])
    settings = preset_settings("minatar", "minatar:breakout").override(
        {
            "replay": "per",
            "num_envs": envs,
            "update_period_steps": period,
            "warmup_steps": FILL_FRAMES,
            "epsilon_start": 0.1,
            "epsilon_end": 0.1,
            "eval_period_frames": 0,
            "checkpoint_period_frames": 0,
            "budget_frames": 10**12,
            "log_period_frames": SEGMENT_FRAMES,
        }
    )
    events = Trainer(settings, training_game(settings), configure_torch("cpu", 1)).train()

    def segment() -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        while not isinstance(next(events), IntervalLogged):
            pass
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    for _ in range(1 + FILL_FRAMES // SEGMENT_FRAMES):  # until learning has begun
        segment()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(segment()), flush=True)


if __name__ == "__main__":
    main()
