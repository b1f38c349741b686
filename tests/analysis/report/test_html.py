import json
import re

import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import ReportSettings, build_report

pytest.importorskip("jinja2", reason="the page needs the report extra")
from pser.analysis.report.html import render_html, script_json


def page_of(path, **more):
    return render_html(build_report([path], ReportSettings(resamples=200, **more)))


def payload_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
    )


def test_page_names_no_address_to_load_from(tmp_path):
    write_sweep(tmp_path, seeds=2)
    page = page_of(tmp_path)
    loads = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#][^"']*)["']""", page)
    assert set(loads) <= {"data:,"}
    assert "@import" not in page
    assert "url(" not in page


def test_page_forbids_the_network_by_its_own_policy(tmp_path):
    write_run(tmp_path / "run", Synthetic())
    assert "default-src 'none'" in page_of(tmp_path)


def test_text_from_the_records_cannot_become_markup(tmp_path):
    evil = '</script><img src=x onerror="alert(1)">'
    write_run(tmp_path / "run", Synthetic(label=evil, error=evil, state="failed"))
    write_run(tmp_path / "other", Synthetic(replay="per"))
    page = page_of(tmp_path, title=evil)
    assert evil not in page
    assert "<img" not in page
    assert payload_of(page)["labels"][0]["name"] == evil


def test_script_json_refuses_nan_and_hides_angle_brackets():
    assert script_json({"a": "</script>"}) == '{"a":"\\u003c/script>"}'
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json({"a": float("nan")})


def test_payload_holds_each_curve_with_its_band_and_both_scales(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong",), seeds=2, frames=20_000_000)
    data = payload_of(page_of(tmp_path))
    (env,) = data["envs"]
    assert [label["name"] for label in data["labels"]] == ["PSER_MaxPrio_MAX", "PER_MaxPrio", "Uniform"]
    for found in env["returns"].values():
        assert [curve["label"] for curve in found["curves"]] == [0, 1, 2]
        for curve in found["curves"]:
            assert len(curve["mean"]) == len(curve["low"]) == len(found["frames"])
            assert len(curve["lines"]) == 2
    assert env["ends"]["human"] == [-20.7, 14.6]
    assert [key for key, _ in data["scales"]] == ["return", "minmax", "human"]


def test_payload_holds_published_figures_on_the_frames_of_the_training_returns(tmp_path):
    write_sweep(tmp_path, envs=("atari:Pong",), seeds=1, frames=20_000_000)
    training = payload_of(page_of(tmp_path))["envs"][0]["returns"]["training"]
    dqn = training["published"][0]
    assert dqn["name"] == "Dopamine DQN (published)"
    at = [frames for frames, mean in zip(training["frames"], dqn["mean"], strict=True) if mean is not None]
    assert at == [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000]
    assert "published" not in payload_of(page_of(tmp_path))["envs"][0]["returns"]["evaluation"]


def test_page_states_the_summary_the_notes_and_how_to_repeat_each_run(tmp_path):
    write_sweep(tmp_path, seeds=1)
    (tmp_path / "empty").mkdir()
    page = page_of(tmp_path, title="A title")
    assert "<h1>A title</h1>" in page
    assert "A single seed a side cannot show one" in page
    assert "empty folder: left out" in page
    assert page.count("pser train --from-run") == 4  # the general one and one a run


def test_page_of_runs_without_records_still_renders(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic())
    for name in ("train.jsonl", "eval.jsonl"):
        (folder / name).unlink()
    page = page_of(tmp_path)
    assert "No returns were recorded yet" in page
    assert payload_of(page)["profile"] is None


def test_same_runs_and_seed_give_the_same_page(tmp_path):
    write_sweep(tmp_path, seeds=2)
    assert page_of(tmp_path) == page_of(tmp_path)
