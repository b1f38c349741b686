"""What tests of several commands share."""

import pytest


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a short finished training."""
    from pser.cli import main

    path = tmp_path_factory.mktemp("runs") / "run"
    flags = {
        "run-dir": path,
        "frames": 80,
        "warmup-steps": 20,
        "capacity": 100,
        "max-episode-steps": 12,
        "tensorboard": "off",
        "eval-period-frames": 40,
        "eval-episodes": 2,
        "eval-num-envs": 2,
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    assert main(["train", "minatar:breakout", *words]) == 0
    return path
