"""`pser train --agent` and `--network`, from the command line to the evaluation."""

import json

import pytest
import torch
from tests.cli.test_train import SMALL

from pser.cli import main

torch.set_num_threads(1)
NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, observation_shape, num_outputs):
        super().__init__()
        self.layer = nn.Linear(observation_shape[0], num_outputs)

    def forward(self, x):
        return torch.tanh(self.layer(x))
"""


def train(path, *flags):
    return main(["train", "gym:CartPole-v1", "--run-dir", str(path), *SMALL, *flags])


def test_rainbow_trains_and_is_evaluated_under_its_name(tmp_path, capsys):
    assert train(tmp_path / "run", "--agent", "rainbow", "--atoms", "7", "--replay", "per") == 0
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert (manifest["agent"], manifest["label"]) == ("Rainbow", "Rainbow_PER_MaxPrio")
    assert main(["evaluate", str(tmp_path / "run"), "--episodes", "2"]) == 0
    assert "Rainbow_PER_MaxPrio: mean return" in capsys.readouterr().out


def test_a_network_of_ones_own_trains_and_is_evaluated(tmp_path, monkeypatch):
    (tmp_path / "net_of_my_own.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    assert train(tmp_path / "run", "--network", "net_of_my_own:Net", "--agent", "c51", "--atoms", "5") == 0
    assert main(["evaluate", str(tmp_path / "run"), "--episodes", "2", "--trust-imports"]) == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--agent", "rainbow", "--v-min", "10"], "v_min must be below v_max"),
        (["--loss", "c51", "--atoms", "1"], "atoms must be at least 2"),
        (["--priority-signal", "kl"], "needs a loss of distributions"),
        (["--agent", "sarsa"], "no agent 'sarsa'"),
        (["--loss", "squared"], "loss must be one of huber, c51"),
        (["--network", "no_such_module:Net"], "cannot import the network"),
        (["--network", "pser.errors:Net"], "has no 'Net'"),
        (["--network", "torch.nn:Linear"], "must be made from"),
        (["--network", "torch.nn:Identity"], "no parameters that could learn"),
        (["--noisy", "on", "--noisy-sigma", "0"], "noisy_sigma must be positive"),
        (["--hidden", "1000000000"], "lower --hidden"),
        (["--threads", "100000"], "threads must be at most 1024"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_is_written(flags, words, tmp_path, capsys):
    assert train(tmp_path / "run", *flags) != 0
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error
    assert not (tmp_path / "run").exists()
