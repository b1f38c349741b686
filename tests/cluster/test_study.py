"""`pser study --engine ray`: the runs of a study as Ray tasks, kept as those of any other executor."""

from dataclasses import asdict, replace

from tests.studies.synthetic import small_study
from tests.studies.test_conduct import Here

from pser.cli import main
from pser.cluster.settings import ClusterSettings
from pser.studies.conduct import Place, conduct, read_records
from pser.studies.study import Arm


def test_a_study_on_ray_keeps_its_runs(ray, tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(
        "from tests.studies.synthetic import small_study\n"
        "STUDY = small_study(name='mine', seeds=1).only(games=['gym:CartPole-v1'])\n"
    )
    folders = ["--results", str(tmp_path / "kept"), "--scratch", str(tmp_path / "scratch")]
    assert main(["study", str(path), *folders, "--engine", "ray"]) == 0
    assert "all runs are finished" in capsys.readouterr().out
    kept = read_records(tmp_path / "kept")
    assert len(kept) == 2
    assert all(record.cpu_seconds for record in kept.values())
    assert not [file for file in (tmp_path / "scratch").rglob("*") if file.is_file()]


def test_an_arm_names_the_engine_of_its_runs(ray, tmp_path):
    on_ray = {"name": "ray", **asdict(ClusterSettings(actors=2, envs_per_actor=2, chunk_steps=5))}
    arms = tuple(Arm(name=name, about=name, settings={}, engine=on_ray) for name in ("ray", "again"))
    study = small_study(
        name="one", seeds=1, arms=(arms[0], Arm(name="here", about="here", settings={})), contrasts=()
    )
    study = study.only(games=["gym:CartPole-v1"])
    place = Place(tmp_path / "results" / "one", tmp_path / "scratch")
    assert conduct(study, place, Here, command="x") == []
    kept = read_records(place.kept)
    here, there = kept["gym-CartPole-v1/here/seed-0"], kept["gym-CartPole-v1/ray/seed-0"]
    assert (here.engine, there.engine) == (None, on_ray)
    assert here.settings == there.settings
    assert there.train["cluster.actors_lost"][-1] == 0
    assert "cluster.actors_lost" not in here.train
    # The settings are the same, the engine is not: only what was made with the same one is taken over.
    other, executor = Place(tmp_path / "results" / "other", tmp_path / "scratch"), Here()
    again = replace(study, name="other", arms=(arms[1],))
    assert conduct(again, other, lambda: executor, command="x") == []
    assert executor.done == []
    assert read_records(other.kept)["gym-CartPole-v1/again/seed-0"].engine == on_ray


def test_a_ray_address_without_ray_is_refused(tmp_path, capsys):
    assert main(["study", "check", "--ray-address", "auto", "--results", str(tmp_path / "kept")]) == 2
    assert "add --engine ray" in capsys.readouterr().err
