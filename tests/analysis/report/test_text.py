"""The report as Markdown and as figures."""

import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import ReportSettings, build_report
from pser.analysis.report.markdown import render_markdown
from pser.analysis.report.tables import mass_table, run_table, score_table, settings_split

pytest.importorskip("matplotlib", reason="the figures need the plot extra")
FAST = ReportSettings(resamples=200)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    write_sweep(root, envs=("atari:Pong", "atari:Qbert"), seeds=2, frames=20_000_000, final=True)
    return build_report([root], FAST)


def test_figures_are_written_as_png_and_svg(report, tmp_path):
    from pser.analysis.report.figures import draw_report_figures

    written = draw_report_figures(report, tmp_path / "figures")
    stems = {
        "learning_curves", "training_returns", "ablation", "diagnostics", "aggregates", "performance_profile",
        "percent_change",
    }  # fmt: skip
    assert {path.name for path in written} == {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    for path in written:
        assert path.stat().st_size > 1000


def test_single_game_is_drawn_without_what_repeats_it(tmp_path):
    from pser.analysis.report.figures import draw_report_figures

    write_sweep(tmp_path / "runs", seeds=2)
    written = draw_report_figures(build_report([tmp_path / "runs"], FAST), tmp_path / "figures")
    assert {path.stem for path in written} == {"learning_curves", "training_returns", "diagnostics"}


def test_numbers_of_a_column_have_the_same_decimals(report):
    table = score_table(report)
    names = [column.name for column in table.columns]
    for name in ("final", "best snapshot"):
        decimals = {len(row[names.index(name)].text.partition(".")[2]) for row in table.rows}
        assert decimals == {2}


def test_same_report_gives_the_same_figure_bytes(report, tmp_path):
    from pser.analysis.report.figures import _profile

    first, second = (_profile(report, tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_markdown_has_the_words_tables_figures_and_commands(report, tmp_path):
    figure = tmp_path / "deep" / "figures" / "learning_curves.png"
    text = render_markdown(report, [figure, figure.with_suffix(".svg")], tmp_path)
    assert str(report.sentences[0].rest) in text
    assert "![learning curves](deep/figures/learning_curves.png)" in text
    assert ".svg" not in text
    assert "| atari:Pong | PSER_MaxPrio_MAX | 1" in text
    assert "(20 ep.)" in text
    assert "sticky actions" in text
    for run in report.runs.runs:
        assert f"--from-run {run.path / 'manifest.json'} --run-dir runs/{run.path.name}-again" in text


def test_score_table_drops_columns_that_say_nothing(report, tmp_path):
    assert "human-normalised" in [column.name for column in score_table(report).columns]
    write_run(tmp_path / "run", Synthetic())
    plain = score_table(build_report([tmp_path], FAST))
    assert [column.name for column in plain.columns] == [
        "game", "replay", "final", "lowest to highest", "seeds", "best snapshot", "frames",
    ]  # fmt: skip
    assert plain.rows[0][3].text == "single seed"


def test_run_without_records_is_in_the_table_of_runs_with_dashes(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic())
    for name in ("train.jsonl", "eval.jsonl"):
        (folder / name).unlink()
    report = build_report([tmp_path], FAST)
    (row,) = run_table(report).rows
    assert [cell.text for cell in row[-3:]] == ["–", "–", "–"]
    assert "no records yet" in render_markdown(report, [], tmp_path)


def test_settings_are_split_into_shared_and_own(report):
    shared, own = settings_split(report.runs.runs)
    assert shared["replay.alpha"] == 0.6
    assert "run.seed" not in shared
    first = report.runs.runs[0]
    assert own[first.name] == {
        "game.env": first.env,
        "replay.replay": first.replay,
        "run.seed": first.seed,
    }


def test_sources_of_the_mass_are_tabled_where_they_were_recorded(report, tmp_path):
    table = mass_table(report)
    assert [cell.text for cell in table.rows[0]] == [
        "atari:Pong", "PSER_MaxPrio_MAX", "0.200", "0.300", "0.400", "0.100",
    ]  # fmt: skip
    assert len(table.rows) == 6
    assert "## Where the sampling mass comes from" in render_markdown(report, [], tmp_path)
    folder = write_run(tmp_path / "run", Synthetic())
    (folder / "train.jsonl").write_text("")
    assert mass_table(build_report([tmp_path], FAST)) is None
