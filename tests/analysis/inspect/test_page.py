"""What the page is made from, and what it says of what it leaves out."""

import json
import re

import numpy as np
import pytest

import pser
from analysis.inspect.memories import played
from pser.analysis.inspect import sources
from pser.analysis.inspect.sources import Source, read_source
from pser.cli import main
from pser.errors import PserError
from pser.records.checkpoint import write_checkpoint
from pser.records.inspection import inspect_memory, write_inspection

pytest.importorskip("jinja2", reason="the page needs the report extra")
from pser.analysis.inspect import page as page_module
from pser.analysis.inspect.page import render_page

MANIFEST = {
    "format": 1,
    "settings": {"replay": {"initial": "max"}},
    "env": "minatar:breakout",
    "label": "PSER_MaxPrio_MAX",
    "seed": 3,
}


@pytest.fixture
def run(tmp_path):
    """A run with inspections at 100, 200 … 500 frames and checkpoints at 400 and 500."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_text(json.dumps(MANIFEST))
    for frames in range(100, 600, 100):
        memory, drawn = played(steps=frames // 5)
        if frames >= 400:
            write_checkpoint(tmp_path / "run/checkpoints", frames, {"frames": frames}, memory)
        write_inspection(tmp_path / "run/inspect", inspect_memory(memory, frames=frames, drawn=drawn))
    return tmp_path / "run"


def read(path, moments=12, picture_steps=4_000):
    return read_source(path, moments=moments, picture_steps=picture_steps)


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


def test_the_moments_of_a_run_are_its_inspections_in_order(run):
    source = read(run)
    assert [moment.frames for moment in source.moments] == [100, 200, 300, 400, 500]
    assert source.moments[
        -1
    ].drawn_ids.size  # the inspection, which knows the batches, and not the checkpoint
    assert source.notes == []


def test_without_inspections_the_checkpoints_are_shown_and_that_is_said(run):
    for path in (run / "inspect").iterdir():
        path.unlink()
    source = read(run)
    assert [moment.frames for moment in source.moments] == [400, 500]
    assert "--inspect-period-frames" in source.notes[0]


def test_more_moments_than_wanted_are_thinned_evenly_and_the_last_stays(run):
    source = read(run, moments=3)
    assert [moment.frames for moment in source.moments] == [100, 300, 500]
    assert source.notes == ["3 of 5 moments are shown, evenly chosen (--moments shows more)"]


def test_a_shard_is_not_passed_off_as_the_whole_memory(tmp_path, capsys):
    memory, _ = played()
    checkpoint = tmp_path / "run/checkpoints/frames-000000000100"
    checkpoint.parent.mkdir(parents=True)
    (tmp_path / "run/manifest.json").write_text(json.dumps(MANIFEST))
    write_checkpoint(checkpoint.parent, 100, {"frames": 100}, memory)
    assert not any("shard" in note for note in read(checkpoint).notes + read(tmp_path / "run").notes)
    memory.save(checkpoint / "memory-1.pser")
    said = f"this is shard 1 of the 2 that the memory is in, not the whole: pser inspect {checkpoint}/memory-1.pser"
    for path in (tmp_path / "run", checkpoint, checkpoint / "memory.pser"):
        assert read(path).notes[-1].startswith(said)
    assert read(checkpoint / "memory-1.pser").notes[-1].startswith("this is shard 2 of the 2")
    out = tmp_path / "inspect.html"
    assert main(["inspect", str(tmp_path / "run"), "--out", str(out)]) == 0
    assert f"note: {said}" in capsys.readouterr().out
    assert said in out.read_text()


def test_early_moments_are_left_out_of_a_page_that_would_grow_too_large(run, monkeypatch):
    monkeypatch.setattr(sources, "MOST_TRANSITIONS", 400)
    source = read(run)
    assert [moment.frames for moment in source.moments] == [400, 500]
    assert "before 400 frames are left out" in source.notes[0]


def test_pictures_are_left_out_of_a_page_that_would_grow_too_large(run, monkeypatch):
    whole = render_page(read(run), "t")
    monkeypatch.setattr(page_module, "MOST_PICTURE_BYTES", 3_000)
    text = render_page(read(run), "t")
    assert len(text) < len(whole)
    assert "episodes are left out: the page would grow too large" in text
    assert data_of(text)["moments"][-1]["pictures"]["episodes"]


@pytest.mark.parametrize("kind", ["memory", "checkpoint", "inspection"])
def test_a_memory_a_checkpoint_and_an_inspection_can_be_named_as_well(run, tmp_path, kind):
    played()[0].save(tmp_path / "memory.pser")
    path = {
        "memory": tmp_path / "memory.pser",
        "checkpoint": run / "checkpoints/frames-000000000400",
        "inspection": run / "inspect/frames-000000000100.pser",
    }[kind]
    (moment,) = read(path).moments
    assert len(moment) == {"memory": 200, "checkpoint": 160, "inspection": 40}[kind]


def test_what_holds_no_memory_is_refused_in_one_line(tmp_path, capsys):
    with pytest.raises(PserError, match=r"there is no .*nowhere: name a run folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(PserError, match="holds no run and no memory"):
        read(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    with pytest.raises(PserError, match="has no checkpoint and no inspection yet"):
        read(tmp_path)
    assert main(["inspect", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["inspect", str(tmp_path), "--moments", "0"]) == 2
    assert main(["inspect", str(tmp_path), "--out", str(tmp_path)]) == 2


def test_the_command_writes_the_page_and_names_it(run, tmp_path, capsys):
    assert main(["inspect", str(run), "--out", str(tmp_path / "a/page.html"), "--moments", "2"]) == 0
    printed = capsys.readouterr().out
    assert "note: 2 of 5 moments" in printed
    assert "2 moments, 200 transitions in the last" in printed
    assert "minatar:breakout, PSER_MaxPrio_MAX, seed 3" in (tmp_path / "a/page.html").read_text(
        encoding="utf-8"
    )


def test_page_names_no_address_to_load_from_and_forbids_the_network(run):
    text = render_page(read(run), "t")
    loads = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#][^"']*)["']""", text)
    assert set(loads) <= {"data:,"}
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_text_from_the_records_cannot_become_markup(run):
    evil = '</script><img src=x onerror="alert(1)">'
    (run / "manifest.json").write_text(json.dumps({**MANIFEST, "label": evil}))
    text = render_page(read(run), evil)
    assert "<img" not in text


@pytest.mark.parametrize(
    "rule", [pser.PSER(), pser.PSER(alpha=0.0), pser.PER(), pser.PER(variant="rank"), pser.Uniform()], ids=str
)
def test_every_prioritization_and_an_empty_memory_have_a_page(rule, tmp_path):
    for memory in (played(rule)[0], pser.ReplayMemory(4, pser.Array((), np.float32), prioritization=rule)):
        source = Source(tmp_path, [inspect_memory(memory)], None, [])
        (moment,) = data_of(render_page(source, "t"))["moments"]
        assert moment["size"] == len(memory)
        assert moment["memory"]["prioritization"]["type"] == type(rule).__name__
