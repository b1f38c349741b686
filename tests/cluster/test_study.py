"""`pser study --engine ray`: the runs of a study as Ray tasks, kept as those of any other executor."""

from pser.cli import main
from pser.studies.conduct import read_records


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


def test_a_ray_address_without_ray_is_refused(tmp_path, capsys):
    assert main(["study", "check", "--ray-address", "auto", "--results", str(tmp_path / "kept")]) == 2
    assert "add --engine ray" in capsys.readouterr().err
