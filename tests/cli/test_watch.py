"""`pser watch`: a video of the agent."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from PIL import Image

from pser.cli import main
from pser.run import video

torch.set_num_threads(1)
ROOT = Path(__file__).parents[2]


def test_a_gif_shows_every_step(run, tmp_path, capsys):
    out = tmp_path / "play.gif"
    assert main(["watch", str(run), "--out", str(out), "--max-steps", "8", "--epsilon", "1.0"]) == 0
    with Image.open(out) as image:
        assert image.size == (320, 320)
        assert image.n_frames > 2
    assert str(out) in capsys.readouterr().out


def test_an_mp4_is_the_default_where_it_can_be_written(run):
    pytest.importorskip("imageio_ffmpeg")
    assert main(["watch", str(run), "--max-steps", "5"]) == 0
    data = (run / "video.mp4").read_bytes()
    assert data[4:8] == b"ftyp"
    assert len(data) > 1000


def test_without_ffmpeg_a_gif_is_the_default_and_an_mp4_says_what_to_do(run, monkeypatch, capsys):
    monkeypatch.setattr(video, "find_spec", lambda _: None)
    assert video.best_suffix() == ".gif"

    def missing(_):
        raise ModuleNotFoundError

    monkeypatch.setattr(video, "import_module", missing)
    assert main(["watch", str(run), "--out", str(run / "x.mp4"), "--max-steps", "2"]) == 2
    assert "pip install imageio-ffmpeg" in capsys.readouterr().err


def test_cartpole_is_shown_without_a_desktop_and_without_complaint(tmp_path):
    pytest.importorskip("pygame")
    run, out = tmp_path / "run", tmp_path / "play.gif"
    short = ["--frames", "20", "--warmup-steps", "16", "--eval-period-frames", "20", "--eval-episodes", "1"]
    assert main(["train", "gym:CartPole-v1", "--run-dir", str(run), *short, "--tensorboard", "off"]) == 0
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("SDL_", "XDG_"))}
    command = [sys.executable, "-m", "pser", "watch", str(run), "--out", str(out), "--max-steps", "5"]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    with Image.open(out) as image:
        assert image.size == (600, 400)


def test_the_extra_all_brings_what_draws_cartpole():
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = optional["optional-dependencies"]

    def asked(extra):
        for text in optional[extra]:
            need = Requirement(text)
            if need.name == "pser":
                for inner in need.extras:
                    yield from asked(inner)
            else:
                yield need

    brought = {
        Requirement(text).name
        for need in asked("all")
        if need.name == "gymnasium"
        for text in requires("gymnasium")
        for marker in (Requirement(text).marker,)
        if marker and any(marker.evaluate({"extra": extra}) for extra in need.extras)
    }
    assert brought & {"pygame", "pygame-ce"}


def test_another_kind_of_file_is_refused(run, capsys):
    assert main(["watch", str(run), "--out", "x.avi"]) == 2
    assert "an .mp4 or a .gif" in capsys.readouterr().err
