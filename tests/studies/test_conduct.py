"""Carrying out a study: every finished run is kept, and nothing is run twice."""

from concurrent.futures import Future
from dataclasses import replace

import pytest

from pser.cli import main
from pser.run.executor import LocalProcesses, Outcome
from pser.run.job import carry_out
from pser.studies.conduct import Place, conduct, read_records
from pser.studies.declaration import declaration
from pser.studies.results import results_of
from pser.studies.status import hours_left, overview_lines, status_lines
from pser.studies.study import Arm, Planned

from .synthetic import record, small_study


class Here:
    """An executor that trains in this process, and fails the jobs it is told to, or stops before them."""

    def __init__(self, failing=(), stop_at=None):
        self.failing, self.stop_at, self.done = failing, stop_at, []

    def submit(self, job):
        future: Future[Outcome] = Future()
        if job.name == self.stop_at:
            raise KeyboardInterrupt
        if job.name in self.failing:
            future.set_result(Outcome(2, "pser: it broke"))
            return future
        carry_out(job)
        self.done.append(job.name)
        future.set_result(Outcome(0, ""))
        return future

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "kept", tmp_path / "scratch")


def test_a_study_keeps_its_runs_and_is_not_run_again(place):
    study, executor = small_study(seeds=1), Here()
    assert conduct(study, place, lambda: executor, command="pser study small") == []
    assert executor.done == [run.name for run in study.runs({})]
    kept = read_records(place.kept)
    assert list(kept) == sorted(run.path for run in study.runs({}))
    one = kept["gym-CartPole-v1/pser/seed-0"]
    assert (one.study, one.env, one.arm, one.seed) == ("small", "gym:CartPole-v1", "pser", 0)
    assert one.train["frames"] == [12, 20, 32, 40, 52, 60]  # four environments overshoot a period
    assert (one.final["frames"], one.command) == (60, "pser study small")
    assert one.train["memory.effective_sample_size"][-1] > 0
    assert not list(place.scratch.rglob("manifest.json"))  # what is kept needs no folder of its own
    assert max(path.stat().st_size for path in place.kept.rglob("*.json")) < 60_000
    again = Here()
    assert conduct(study, place, lambda: again, command="") == []
    assert again.done == []


def test_a_stop_loses_no_finished_run_and_seeds_top_up(place):
    study = small_study(seeds=1)
    last = study.runs({})[-1].name
    with pytest.raises(KeyboardInterrupt):
        conduct(study, place, lambda: Here(stop_at=last), command="")
    assert len(list(place.scratch.rglob("manifest.json"))) == 3  # finished, not yet collected
    executor = Here()
    conduct(study, place, lambda: executor, command="")
    assert executor.done == [last]
    assert len(read_records(place.kept)) == 4
    conduct(study, place, lambda: executor, command="", seeds=2)
    assert executor.done[1:] == [run.name for run in study.runs({}, 2)[4:]]


def test_a_failed_run_is_named_and_the_others_are_kept(place):
    study = small_study(seeds=1)
    bad = study.runs({})[1].name
    assert conduct(study, place, lambda: Here(failing={bad}), command="") == [bad]
    assert len(read_records(place.kept)) == 3


def test_a_run_that_another_study_made_is_taken_over(tmp_path):
    first, executor = Place(tmp_path / "kept" / "small", tmp_path / "scratch" / "small"), Here()
    conduct(small_study(seeds=1), first, lambda: executor, command="")
    second = Place(tmp_path / "kept" / "other", tmp_path / "scratch" / "other")
    arms = (
        Arm(name="the-same", about="PSER", settings={"replay": "pser"}),
        Arm(name="another", about="PSER", settings={"replay": "pser", "eta": 0.5}),
    )
    study, executor = small_study(name="other", seeds=2, arms=arms, contrasts=()), Here()
    conduct(study, second, lambda: executor, command="")
    shared = {"gym-CartPole-v1/the-same/seed-0", "OnlineCliffwalk6-v0/the-same/seed-0"}
    assert len(executor.done) == 6
    kept = read_records(second.kept)
    assert {path for path, record in kept.items() if record.shared_from == "small"} == shared
    taken = kept["gym-CartPole-v1/the-same/seed-0"]
    made = read_records(first.kept)["gym-CartPole-v1/pser/seed-0"]
    assert replace(taken, study="small", arm="pser", shared_from=None) == made
    results = results_of(study, {path: replace(record, cpu_seconds=3600.0) for path, record in kept.items()})
    assert results.core_hours == 6.0  # the cost of the other two is counted where they were made
    assert any("2 runs with the same settings were made for `small`" in note for note in results.notes)


def test_the_status_counts_runs(place):
    study = small_study(seeds=2)
    conduct(study.only(arms=["pser"]), place, Here, command="", seeds=1)
    lines = list(status_lines(study, place))
    assert [line.split() for line in lines[:-1]] == [
        ["CartPole-v1", "OnlineCliffwalk6-v0"],
        ["uniform", "0/2", "0/2"],
        ["pser", "1/2", "1/2"],
    ]
    assert len({len(line) for line in lines[:-1]}) == 1  # in columns
    assert lines[-1] == "2 of 8 runs so far, 0.0 core-hours spent on what is kept"  # their cost is not known


def test_the_overview_counts_a_run_once_that_two_studies_need(tmp_path):
    def at(name):
        return Place(tmp_path / "kept" / name, tmp_path / "scratch" / name)

    first = small_study(seeds=1, core_hours=4.0)
    arms = (*first.arms, Arm(name="more", about="PSER", settings={"replay": "pser", "eta": 0.5}))
    second = small_study(name="other", seeds=1, arms=arms, contrasts=(), core_hours=6.0)
    none = [line.split() for line in overview_lines([(one, at(one.name)) for one in (first, second)])]
    assert none == [
        ["runs", "core-hours", "to", "go"],
        ["small", "0/4", "0.0", "4.0"],
        [
            "other",
            "0/6",
            "0.0",
            "2.0",
        ],  # two of its six runs: the others are the first study's, and taken over
        ["0.0", "6.0"],
    ]
    for run in first.runs({}):
        _, one = record(first, run.game, run.arm, run.seed, 1.0, cpu_seconds=3600.0)
        one.write(at("small").record(run))
    lines = list(overview_lines([(one, at(one.name)) for one in (first, second)]))
    assert [line.split() for line in lines[1:]] == [
        ["small", "4/4", "4.0", "–"],
        ["other", "0/6", "0.0", "2.0"],
        ["4.0", "2.0"],
    ]
    assert len({len(line) for line in lines}) == 1  # in columns


def test_the_overview_leaves_out_of_the_sum_what_may_never_be_run(tmp_path):
    study = small_study(seeds=1, core_hours=4.0, only_if="it rains")
    place = Place(tmp_path / "kept" / "small", tmp_path / "scratch" / "small")
    *_, line, summed = overview_lines([(study, place)])
    assert line.split() == ["small", "0/4", "0.0", "4.0", "only", "if", "it", "rains"]
    assert summed.split() == ["0.0", "0.0"]
    assert "run only if it rains; then after the seeds" in declaration(study)
    run = study.runs({})[0]
    record(study, run.game, run.arm, run.seed, 1.0, cpu_seconds=3600.0)[1].write(place.record(run))
    *_, line, summed = overview_lines([(study, place)])
    assert "only if" not in line
    assert summed.split() == ["1.0", "3.0"]


def test_what_is_to_come_is_told_by_the_cost_of_a_frame_on_the_same_game():
    study = small_study(seeds=3)  # 60 frames a run
    cart, chain = study.games
    arm = study.arms[0]
    made = dict(
        record(study, game, arm, seed, 1.0, cpu_seconds=seconds)
        for game, seed, seconds in ((cart, 0, 60.0), (cart, 1, 600.0), (cart, 2, 120.0))
    )
    assert hours_left(study, [Planned(cart, arm, 3)], made) == pytest.approx(120 / 3600)
    assert hours_left(study, [Planned(chain, arm, 0)], made) == pytest.approx(120 / 3600)  # as on any game
    other = dict([record(study, chain, arm, 0, 1.0, cpu_seconds=30.0)])
    both = [Planned(cart, arm, 3), Planned(chain, arm, 1)]
    assert hours_left(study, both, made | other) == pytest.approx(150 / 3600)
    assert hours_left(study, both, {}) is None
    assert hours_left(study, [], made) == 0.0


def test_a_runs_processor_time_is_kept(place):
    study = small_study(seeds=1).only(arms=["pser"], games=["gym:CartPole-v1"])
    conduct(study, place, lambda: LocalProcesses(1), command="")
    (kept,) = read_records(place.kept).values()
    assert kept.cpu_seconds > 0


def test_the_command_runs_a_users_study_and_reports_it(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(
        "from tests.studies.synthetic import small_study\n"
        "STUDY = small_study(name='mine', seeds=1).only(games=['gym:CartPole-v1'])\n"
    )
    flags = ["--results", str(tmp_path / "kept"), "--scratch", str(tmp_path / "scratch")]
    assert main(["study", str(path), *flags, "--jobs", "2"]) == 0
    assert main(["study", str(path), *flags, "--status"]) == 0
    assert "2 of 2 runs so far" in capsys.readouterr().out
    assert main(["study", str(path), *flags, "--report"]) == 0
    page = (tmp_path / "kept" / "README.md").read_text()
    assert "Is PSER better?" in page
    assert (tmp_path / "kept" / "figures" / "curves.png").exists()
    lines = (tmp_path / "kept" / "runs.csv").read_text().splitlines()
    assert lines[0].startswith("game,arm,seed,last tenth")
    assert len(lines) == 3
    assert main(["study", str(path), *flags, "--report", "--arms", "pser"]) == 2
    assert "--report goes without --arms" in capsys.readouterr().err
    path.write_text(
        path.read_text().replace("])", "], arms=['pser'])") + "STUDY.settings['capacity'] = 150\n"
    )
    for more in ([], ["--status"]):
        assert main(["study", str(path), *flags, *more]) == 0
        assert "note: 1 run had other settings than are declared now: capacity of pser was 100, now 150" in (
            capsys.readouterr().out
        )


def test_a_study_stops_when_its_time_is_up_and_goes_on(tmp_path, capsys):
    path = tmp_path / "long.py"
    path.write_text(
        "from tests.studies.synthetic import SMALL, small_study\n"
        "STUDY = small_study(name='long', settings={**SMALL, 'budget_frames': 10_000_000})\n"
    )
    flags = ["--results", str(tmp_path / "kept"), "--scratch", str(tmp_path / "scratch")]
    assert main(["study", str(path), *flags, "--max-minutes", "0.001"]) == 0
    assert "the time is up" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [[], ["nobody"], ["check", "--jobs", "0"], ["check", "--arms", "nobody"]])
def test_mistakes_end_with_one_line(flags, capsys):
    assert main(["study", *flags]) == 2
    assert capsys.readouterr().err.startswith("pser: ")


def test_the_list_prints_every_declaration(capsys):
    assert main(["study", "--list"]) == 0
    assert "minatar: Does PSER help" in capsys.readouterr().out
