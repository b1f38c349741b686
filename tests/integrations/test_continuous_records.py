"""The command that keeps records of SAC and TD3: a run leaves a whole record, and the table tells what they say."""

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

SCRIPT = Path(__file__).parents[2] / "results" / "continuous" / "run.py"


@pytest.fixture
def command():
    spec = importlib.util.spec_from_file_location("continuous_records", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_leaves_a_whole_record(command, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "EPISODES", 1)
    monkeypatch.setattr(command, "EVALUATIONS", 1)
    record = command.train("Pendulum-v1", "SAC", "pser", 0, steps=130)
    path = command.path_of(tmp_path, "Pendulum-v1", "SAC", "pser", 0)
    command.write(path, record)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again == record
    assert again["memory"]["updates_applied"] == 30 * 256  # one a step after SB3's 100 learning_starts
    assert len(again["evaluations"]) == 1


def test_only_runs_without_a_record_are_done(command, monkeypatch, tmp_path):
    done = command.path_of(tmp_path, "Pendulum-v1", "SAC", "per", 0)
    command.write(done, {})
    commands = []
    monkeypatch.setattr(command.subprocess, "run", lambda line, **_: commands.append(line[-4:]))
    options = command.argparse.Namespace(
        seeds=[0], tasks=["Pendulum-v1"], records=tmp_path, steps=None, jobs=2
    )
    command.run_all(options)
    expected = [
        ["Pendulum-v1", algorithm, replay, "0"] for algorithm in ("SAC", "TD3") for replay in command.REPLAYS
    ]
    expected.remove(["Pendulum-v1", "SAC", "per", "0"])
    assert sorted(commands) == sorted(expected)


def test_the_table_tells_what_the_seeds_allow_to_say(command, tmp_path):
    for replay, level in (("uniform", 0.0), ("pser", 100.0)):
        for seed in range(5):
            row = {"task": "Pendulum-v1", "algorithm": "SAC", "replay": replay, "seed": seed}
            command.write(
                command.path_of(tmp_path, *list(row.values())), {**row, "final_return": level + seed}
            )
    text = command.table(tmp_path)
    assert "| Pendulum-v1 | SAC | uniform | 5 | 2.0 [0.0, 4.0] | – |" in text
    assert "| Pendulum-v1 | SAC | pser | 5 | 102.0 [100.0, 104.0] | p = 0.01 |" in text
