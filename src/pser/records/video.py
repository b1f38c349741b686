"""Images to a video file: MP4 by ffmpeg where imageio-ffmpeg is installed, animated GIF by Pillow."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pser.errors import PserError

Image = NDArray[np.uint8]


def best_suffix() -> str:
    """The best kind of video that can be written here."""
    return ".mp4" if find_spec("imageio_ffmpeg") else ".gif"


def write_video(path: Path, images: Sequence[Image], *, fps: int, min_height: int) -> None:
    """Write images (height, width, 3), enlarged by a whole factor if they are small."""
    factor = max(1, round(min_height / images[0].shape[0]))
    enlarged = [image.repeat(factor, 0).repeat(factor, 1) for image in images]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".mp4":
        _write_mp4(path, enlarged, fps)
    else:
        _write_gif(path, enlarged, fps)


def _write_mp4(path: Path, images: Sequence[Image], fps: int) -> None:
    try:
        imageio_ffmpeg = import_module("imageio_ffmpeg")
    except ModuleNotFoundError:
        raise PserError("an MP4 needs imageio-ffmpeg: pip install imageio-ffmpeg, or name a .gif") from None
    height, width = (extent - extent % 2 for extent in images[0].shape[:2])  # the codec wants even extents
    writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=fps, macro_block_size=1, quality=7)
    writer.send(None)
    for image in images:
        writer.send(np.ascontiguousarray(image[:height, :width]))
    writer.close()


def _write_gif(path: Path, images: Sequence[Image], fps: int) -> None:
    try:
        from PIL import Image as Pillow
    except ModuleNotFoundError:
        raise PserError("a GIF needs Pillow: pip install pillow, or name an .mp4") from None
    first, *rest = (Pillow.fromarray(image) for image in images)
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
