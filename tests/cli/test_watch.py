"""`pser watch`: a video of the agent."""

import pytest
import torch
from PIL import Image

from pser.cli import main
from pser.run import video

torch.set_num_threads(1)


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


def test_another_kind_of_file_is_refused(run, capsys):
    assert main(["watch", str(run), "--out", "x.avi"]) == 2
    assert "an .mp4 or a .gif" in capsys.readouterr().err
