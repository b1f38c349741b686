"""`pser sweep`: the grid, its failures, and going on."""

import json
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from pser.cli import main, sweep
from pser.errors import PserError
from pser.learner.presets import preset_settings
from pser.learner.settings_json import from_json, to_json
from pser.learner.strategies import STRATEGIES
from pser.records.folder import RunFolder
from pser.records.manifest import build_manifest, write_manifest
from pser.run import grid
from pser.run.executor import LocalProcesses, Outcome
from pser.run.job import Job
from waiting import until

SMALL = [
    *("--frames", "60", "--warmup-steps", "20", "--capacity", "100", "--batch-size", "4", "--hidden", "8"),
    *("--eval-period-frames", "0", "--tensorboard", "off", "--max-episode-steps", "20"),
]


def settings(tmp_path, *flags):
    return sweep.parse(["--out", str(tmp_path), *flags])


def job_of(folder, env="gym:CartPole-v1", **changes):
    """A short run."""
    small = {"budget_frames": 40, "warmup_steps": 20, "capacity": 100, "batch_size": 4, "hidden": (8,)}
    wanted = preset_settings("classic", "gym:CartPole-v1").override(
        {**small, "eval_period_frames": 0, "tensorboard": False, **changes}
    )
    plain = to_json(wanted)
    plain["game"]["env"] = env
    return Job(folder.name, folder, plain, "classic", "pser sweep")


class Recorder:
    """An executor that carries out nothing: jobs whose name it is told to fail, fail."""

    def __init__(self, failing=()):
        self.failing, self.jobs = failing, []

    def submit(self, job):
        self.jobs.append(job)
        future: Future[Outcome] = Future()
        fails = job.name in self.failing
        future.set_result(Outcome(2, "pser: it broke") if fails else Outcome(0, ""))
        return future


def leave_run(job, state, **changes):
    """What a run of an earlier sweep left."""
    job.folder.mkdir(parents=True)
    kept = preset_settings("minatar", "minatar:breakout").override(changes)
    write_manifest(job.folder / "manifest.json", build_manifest(kept, "minatar"))
    (job.folder / "status.json").write_text(json.dumps({"state": state, "frames": 1, "error": None}))


def test_the_grid_has_every_combination_once(tmp_path):
    flags = [
        "--envs",
        "minatar:breakout",
        "atari:Pong",
        "--replay",
        "uniform",
        "per",
        "pser",
        "--seeds",
        "0",
        "1",
    ]
    jobs = sweep.plan(settings(tmp_path, *flags, "--initial", "max", "td", "--decay", "max", "add"))
    labels = {job.folder.parent.name for job in jobs}
    assert labels == {
        "Uniform",
        "PER_MaxPrio",
        "PER_CurrentTD",
        "PSER_MaxPrio_MAX",
        "PSER_MaxPrio_ADD",
        "PSER_CurrentTD_MAX",
        "PSER_CurrentTD_ADD",
    }
    assert len(jobs) == len({job.folder for job in jobs}) == 7 * 2 * 2


def test_short_runs_do_not_end_in_long_evaluations_unasked(tmp_path):
    flags = ["--envs", "atari:Pong", "--replay", "per", "--seeds", "0", "--frames", "3000"]
    (job,) = sweep.plan(settings(tmp_path, *flags))
    assert job.settings["evaluation"]["eval_frames"] == 1_500


def test_every_strategy_can_be_swept(tmp_path):
    flags = ["--envs", "gym:CartPole-v1", "--seeds", "0", "--n-step", "1", "--initial", "max", "td"]
    jobs = sweep.plan(settings(tmp_path, *flags, "--replay", *STRATEGIES))
    assert {job.settings["replay"]["replay"] for job in jobs} == set(STRATEGIES)
    assert len(jobs) == len(STRATEGIES) + 2  # PER and PSER have two initial priorities


def test_a_bad_setting_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(PserError, match="alpha"):
        sweep.plan(settings(tmp_path, "--envs", "minatar:breakout", "--alpha", "2"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--envs", "gym:CartPole-v1", "gym:Pendulum-v1"], "gym:Pendulum-v1 has Box"),
        (["--envs", "minatar:breakout", "minatar:breakot"], "did you mean breakout"),
        (["--envs", "gym:CartPole-v1", "--replay", "uniform", "ier"], "introspective replay needs n_step 1"),
        (["--envs", "gym:CartPole-v1", "--preset", "paper"], "the preset paper sets life_loss"),
        (["--envs", "minatar:breakout", "--eval-noop-max", "30"], "noop_max is for Atari games"),
    ],
)
def test_what_no_run_could_begin_with_is_refused_before_any_runs(tmp_path, flags, message):
    with pytest.raises(PserError, match=message):
        sweep.plan(settings(tmp_path, *flags))


def test_each_game_is_tried_once(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr("pser.learner.games.try_games", lambda settings: tried.append(settings.game.env))
    sweep.plan(settings(tmp_path, "--envs", "gym:CartPole-v1", "atari:Pong", "--seeds", "0", "1"))
    assert tried == ["gym:CartPole-v1", "atari:Pong"]


def test_a_failure_is_reported_and_the_rest_goes_on(tmp_path, capsys):
    jobs = sweep.plan(settings(tmp_path, "--envs", "minatar:breakout", "--seeds", "0"))
    executor = Recorder(failing={jobs[1].name})
    assert grid.carry_out(jobs, executor) == [jobs[1]]
    assert executor.jobs == jobs
    printed = capsys.readouterr().out
    assert f"{jobs[1].name}: failed: pser: it broke" in printed
    assert printed.count("finished") == 2


def test_finished_runs_are_left_alone_and_started_ones_resumed(tmp_path):
    chosen = settings(tmp_path, "--envs", "minatar:breakout", "--seeds", "0")
    done, started, new = sweep.plan(chosen)
    leave_run(done, "finished", replay="uniform")
    leave_run(started, "running", replay="per")
    executor = Recorder()
    grid.carry_out(sweep.plan(chosen), executor)
    assert [job.name for job in executor.jobs] == [started.name, new.name]


@pytest.mark.parametrize("state", ["running", "finished"])
def test_a_run_with_other_settings_is_not_passed_off_as_this_one(tmp_path, state):
    flags = ["--envs", "minatar:Breakout", "--replay", "uniform", "--seeds", "0"]
    (job,) = sweep.plan(settings(tmp_path, *flags))
    leave_run(job, state, replay="uniform")
    assert sweep.plan(settings(tmp_path, *flags))
    with pytest.raises(PserError, match="another learning_rate, budget_frames: use the same"):
        sweep.plan(settings(tmp_path, *flags, "--learning-rate", "0.1", "--frames", "7000000"))


def test_a_folder_with_another_strategy_is_not_taken_for_this_one(tmp_path):
    (job,) = sweep.plan(
        settings(tmp_path, "--envs", "minatar:breakout", "--replay", "uniform", "--seeds", "0")
    )
    leave_run(job, "running", replay="pser")
    with pytest.raises(PserError, match="another replay"):
        grid.refuse_other_settings(job.folder, from_json(job.settings))


def test_a_job_that_is_stopped_while_it_is_being_started_ends(tmp_path, monkeypatch):
    executor = LocalProcesses(1)
    begin = subprocess.Popen

    def slowly(*arguments, **options):
        process = begin([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.PIPE)
        executor._stopped = True  # by another thread, which does not know of it yet
        return process

    monkeypatch.setattr(subprocess, "Popen", slowly)
    assert executor._run(job_of(tmp_path / "run")).message == "killed by SIGTERM"


def test_a_job_that_cannot_even_be_started_is_an_outcome(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with LocalProcesses(1) as executor:
        outcome = executor.submit(job_of(tmp_path / "file" / "run")).result()
    assert outcome.code == 2
    assert "file" in outcome.message


def test_a_killed_process_is_named_so(tmp_path):
    with LocalProcesses(1) as executor:
        future = executor.submit(job_of(tmp_path / "slow", budget_frames=1_000_000))
        while not executor._running:
            time.sleep(0.01)
        next(iter(executor._running)).kill()
    assert future.result().message == "killed by SIGKILL"


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_the_runs_of_a_killed_sweep_end_with_it(tmp_path):
    flags = ["--envs", "gym:CartPole-v1", "--replay", "per", "--seeds", "0", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "pser", "sweep", *flags, "--log-period-frames", "100"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        run = tmp_path / "gym-CartPole-v1/PER_MaxPrio/seed-0"
        until(lambda: (run / "train.jsonl").exists() and (run / "train.jsonl").stat().st_size)
        process.kill()
    until(lambda: not is_locked(RunFolder(run)))


def is_locked(folder):
    try:
        with folder.locked():
            return False
    except PserError:
        return True


def test_a_crashing_process_takes_no_other_with_it(tmp_path):
    with LocalProcesses(2) as executor:
        bad = executor.submit(job_of(tmp_path / "bad", env="nes:Mario"))
        good = executor.submit(job_of(tmp_path / "good"))
    assert bad.result().code == 2
    assert bad.result().message.startswith("pser: ")
    assert good.result() == Outcome(0, "")


def test_a_job_survives_being_written_as_json(tmp_path):
    job = job_of(tmp_path / "run")
    assert Job.from_json(job.to_json()) == job


def test_a_job_carried_out_again_goes_on_from_where_it_was(tmp_path):
    job = job_of(tmp_path / "run", checkpoint_period_frames=20)
    with LocalProcesses(1) as executor:
        assert executor.submit(job).result() == Outcome(0, "")
    assert job.state == "finished"
    manifest = json.loads((job.folder / "manifest.json").read_text())
    assert (manifest["settings"], manifest["command"]) == (job.settings, job.command)
    RunFolder(job.folder).write_status("stopped", 40)  # as if it had been interrupted
    with LocalProcesses(1) as executor:
        assert executor.submit(job).result() == Outcome(0, "")
    assert "resuming" in (tmp_path / "run.log").read_text()


def test_a_grid_whose_time_is_up_stops_its_runs(tmp_path):
    job = job_of(tmp_path / "long", budget_frames=10_000_000)
    with pytest.raises(grid.TimeUpError), LocalProcesses(1) as executor:
        grid.carry_out([job], executor, deadline=time.monotonic() + 0.2)
    assert not executor._running


def test_a_sweep_trains_and_sums_up(tmp_path, capsys):
    arguments = [
        "sweep",
        "--envs",
        "gym:CartPole-v1",
        "--replay",
        "pser",
        "--seeds",
        "5",
        "--out",
        str(tmp_path),
    ]
    assert main([*arguments, *SMALL]) == 0
    run = Path(tmp_path / "gym-CartPole-v1/PSER_MaxPrio_MAX/seed-5")
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    settings = json.loads((run / "manifest.json").read_text())["settings"]
    assert (settings["run"]["budget_frames"], settings["agent"]["hidden"]) == (60, [8])
    capsys.readouterr()
    assert main([*arguments, *SMALL]) == 0
    assert "was finished before" in capsys.readouterr().out


def test_failed_runs_end_the_sweep_with_one_line(tmp_path, capsys):
    arguments = [
        "sweep",
        "--envs",
        "gym:CartPole-v1",
        "--network",
        "nature",
        "--replay",
        "per",
        "--seeds",
        "0",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "1 of 1 runs failed" in captured.err
    assert "the nature network needs frames" in captured.out


def test_agents_are_an_axis_of_the_grid(tmp_path):
    jobs = sweep.plan(
        settings(
            tmp_path,
            *("--envs", "minatar:breakout", "--replay", "per", "uniform", "--seeds", "0"),
            *("--agent", "dqn", "rainbow", "rainbow-no-noisy", "--preset", "minatar-fast"),
        )
    )
    assert [job.folder.parent.name for job in jobs] == [
        "PER_MaxPrio",
        "Uniform",
        "Rainbow_PER_MaxPrio",
        "Rainbow_Uniform",
        "Rainbow-NoNoisy_PER_MaxPrio",
        "Rainbow-NoNoisy_Uniform",
    ]
    last = jobs[-1].settings
    assert (last["agent"]["loss"], last["agent"]["noisy"], last["replay"]["n_step"]) == ("c51", False, 3)
    assert last["game"]["num_envs"] == 8


def test_an_unknown_agent_is_refused_before_anything_is_run(tmp_path):
    with pytest.raises(PserError, match="no agent 'sarsa'"):
        settings(tmp_path, "--envs", "minatar:breakout", "--agent", "sarsa")
