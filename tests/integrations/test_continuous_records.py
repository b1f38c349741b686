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
    assert again["memory"]["updates_applied"] == 30 * 128  # one a step after SB3's 100 learning_starts
    assert len(again["evaluations"]) == 1


def played(command, records, commands):
    """In place of a run's process: it is noted, and leaves a record."""

    def run(line, **_):
        commands.append(line[-4:])
        path = command.path_of(records, *line[-4:])
        command.write(path, {"final_return": -150.0, "seconds": 60.0})

    return run


def options(command, records, **changed):
    given = {"seeds": [0], "tasks": ["Pendulum-v1"], "steps": None, "jobs": 2, "max_minutes": None}
    return command.argparse.Namespace(records=records, **{**given, **changed})


def test_only_runs_without_a_record_are_done_and_each_is_told(command, monkeypatch, tmp_path, capsys):
    done = command.path_of(tmp_path, "Pendulum-v1", "SAC", "per", 0)
    command.write(done, {})
    commands = []
    monkeypatch.setattr(command.subprocess, "run", played(command, tmp_path, commands))
    command.run_all(options(command, tmp_path))
    expected = [
        ["Pendulum-v1", algorithm, replay, "0"] for algorithm in ("SAC", "TD3") for replay in command.REPLAYS
    ]
    expected.remove(["Pendulum-v1", "SAC", "per", "0"])
    assert sorted(commands) == sorted(expected)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 runs to do"
    assert len(lines) == 6
    assert lines[5].startswith("5/5 Pendulum-v1-")
    assert ": -150.0 in 60 s, " in lines[5]


def test_no_run_begins_that_may_not_end_in_time(command, monkeypatch, tmp_path, capsys):
    clock, commands = [0.0], []
    leave_record = played(command, tmp_path, commands)

    def run(line, **more):
        leave_record(line, **more)
        clock[0] += 60.0

    monkeypatch.setattr(command.subprocess, "run", run)
    monkeypatch.setattr(command.time, "monotonic", lambda: clock[0])
    command.run_all(options(command, tmp_path, jobs=1, max_minutes=2.5))
    assert len(commands) == 2  # a third would end after 3 minutes
    assert capsys.readouterr().out.splitlines()[-1] == "stopped: 4 runs are left for the same command"
    command.run_all(options(command, tmp_path, jobs=1))
    assert len(commands) == 6


def test_the_table_tells_what_the_seeds_allow_to_say(command, tmp_path):
    for replay, level in (("uniform", 0.0), ("pser", 100.0)):
        for seed in range(5):
            row = {"task": "Pendulum-v1", "algorithm": "SAC", "replay": replay, "seed": seed}
            command.write(
                command.path_of(tmp_path, *list(row.values())), {**row, "final_return": level + seed**2}
            )
    text = command.table(tmp_path)
    assert "| Pendulum-v1 | SAC | uniform | 5 | 4.0 | 6.0 [0.0, 16.0] | – |" in text
    assert "| Pendulum-v1 | SAC | pser | 5 | 104.0 | 106.0 [100.0, 116.0] | p = 0.01 |" in text
