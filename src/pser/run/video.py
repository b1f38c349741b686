"""Images to a video file: MP4 by ffmpeg where imageio-ffmpeg is installed, animated GIF by Pillow."""

import itertools
from collections.abc import Iterator, Sequence
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
    enlarged = (
        image.repeat(factor, 0).repeat(factor, 1) for image in images
    )  # one at a time: they are large
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()  # ffmpeg's own words about a place that cannot be written are many
    if path.suffix.lower() == ".mp4":
        _write_mp4(path, enlarged, fps)
    else:
        _write_gif(path, enlarged, fps)


def _write_mp4(path: Path, images: Iterator[Image], fps: int) -> None:
    try:
        imageio_ffmpeg = import_module("imageio_ffmpeg")
    except ModuleNotFoundError:
        raise PserError("an MP4 needs imageio-ffmpeg: pip install imageio-ffmpeg, or name a .gif") from None
    first = next(images)
    height, width = (extent - extent % 2 for extent in first.shape[:2])  # the codec wants even extents
    writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=fps, macro_block_size=1, quality=7)
    writer.send(None)
    for image in itertools.chain([first], images):
        writer.send(np.ascontiguousarray(image[:height, :width]))
    writer.close()


def _write_gif(path: Path, images: Iterator[Image], fps: int) -> None:
    try:
        from PIL import Image as Pillow
    except ModuleNotFoundError:
        raise PserError("a GIF needs Pillow: pip install pillow, or name an .mp4") from None
    pictures = (Pillow.fromarray(image) for image in images)
    next(pictures).save(path, save_all=True, append_images=pictures, duration=round(1000 / fps), loop=0)
