"""The README's recording: the playground, clicked through in 20 seconds, as a GIF.

python docs/assets/record.py    writes playground.gif beside this file (needs chromium, chromedriver, selenium, pillow)

The page's clock is held and moved on frame by frame, so the recording is the same on a slow machine.
"""

import io
import json
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from pser.analysis.playground.page import render_playground

WIDTH, HEIGHT, FRAMES_PER_SECOND, COLOURS = 880, 640, 8, 48

HELD_CLOCK = """
let now = 0, next = 1;
const waiting = new Map(), frames = new Map();
performance.now = () => now;
window.setTimeout = (act, after = 0) => { waiting.set(next, [now + after, act]); return next++; };
window.clearTimeout = (id) => waiting.delete(id);
window.requestAnimationFrame = (act) => { frames.set(next, act); return next++; };
window.moveOn = (ms) => {
  now += ms;
  for (const [id, [due, act]] of [...waiting]) if (due <= now) { waiting.delete(id); act(); }
  const due = [...frames.values()];
  frames.clear();
  for (const act of due) act(now);
};
"""

POINTER = """
const pointer = document.createElement("div");
pointer.style = "position:fixed;z-index:9;width:18px;height:18px;border-radius:50%;border:2px solid #111;" +
  "background:#ffd54a99;pointer-events:none;left:0;top:0;translate:-50% -50%";
document.body.append(pointer);
document.documentElement.classList.add("embedded");
document.body.style.padding = "6px 8px";
window.point = (x, y, down) => {
  pointer.style.left = `${x}px`;
  pointer.style.top = `${y}px`;
  pointer.style.scale = down ? 0.7 : 1;
};
window.placeOf = (what) => {
  const bar = /^(per|pser) (\\d+)$/.exec(what);
  const box = (bar ? document.getElementById(bar[1]) : document.querySelector(what)).getBoundingClientRect();
  if (!bar) return [box.x + box.width / 2, box.y + box.height / 2];
  const steps = pserPlayground.controls.steps;
  return [box.x + 44 + ((+bar[2] + 0.5) / steps) * (box.width - 50), box.y + box.height * 0.6];
};
window.press = (what) => {
  const [x, y] = placeOf(what), bar = /^(per|pser) /.exec(what);
  if (!bar) return document.querySelector(what).click();
  const canvas = document.getElementById(bar[1]), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent("click", { clientX: x, clientY: y, bubbles: true }));
};
"""

SCENES = (
    ("pser 18", 2.4),
    ("[name=click][value=quiet]", 0.3),
    ("pser 17", 1.2),
    ("pser 16", 1.2),
    ("[data-preset=figure4]", 3.4),
    ("[data-preset=collapse]", 4.4),
    ("[data-preset=kept]", 4.6),
)
"""What is pressed, and the seconds until the next move."""


class Recorder:
    """A browser with a held clock, and the frames seen so far."""

    def __init__(self, page: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ):
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HELD_CLOCK})
        self.driver.get(page.as_uri())
        self.driver.execute_script(POINTER)
        self.frames: list[Image.Image] = []
        self.at = (WIDTH * 0.6, HEIGHT * 0.9)

    def wait(self, seconds: float) -> None:
        """Let time pass, a picture a frame."""
        for _ in range(max(1, round(seconds * FRAMES_PER_SECOND))):
            self.driver.execute_script("moveOn(arguments[0])", 1000 / FRAMES_PER_SECOND)
            self.frames.append(Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB"))

    def press(self, what: str) -> None:
        """Move there and click."""
        place = self.driver.execute_script("return placeOf(arguments[0])", what)
        for part in (0.4, 0.8, 1.0):
            x, y = (a + (b - a) * part for a, b in zip(self.at, place, strict=True))
            self.driver.execute_script("point(arguments[0], arguments[1], arguments[2])", x, y, part == 1.0)
            self.wait(1 / FRAMES_PER_SECOND)
        self.at = tuple(place)
        self.driver.execute_script("press(arguments[0])", what)
        self.driver.execute_script("point(arguments[0], arguments[1], false)", *self.at)


def main() -> None:
    """Click through the scenes and write the GIF."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "playground.html"
        page.write_text(render_playground(), encoding="utf-8")
        recorder = Recorder(page)
        try:
            recorder.wait(0.8)
            for what, seconds in SCENES:
                recorder.press(what)
                recorder.wait(seconds)
        finally:
            recorder.driver.quit()
    palette = recorder.frames[len(recorder.frames) // 2].quantize(COLOURS)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in recorder.frames]
    out = Path(__file__).parent / "playground.gif"
    frames[0].save(
        out,
        save_all=True,
        append_images=frames[1:],
        duration=1000 // FRAMES_PER_SECOND,
        loop=0,
        optimize=True,
    )
    seconds = len(frames) / FRAMES_PER_SECOND
    print(json.dumps({"file": str(out), "seconds": seconds, "bytes": out.stat().st_size}))


if __name__ == "__main__":
    main()
