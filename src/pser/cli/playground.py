"""Play with the rules: one episode, PER and PSER side by side, a page that works offline.

$ pser playground --out playground.html
$ pser playground --serve

Click a step to surprise it or to replay it, and watch priorities flow back; sliders for ρ, η, W and α, MAX or ADD,
MaxPrio or CurrentTD, and the paper's Figure 4 among the examples.
"""

from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pser.errors import PserError

HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the page goes."""

    out: Path = Path("playground.html")
    """The page."""
    serve: bool = False
    """Serve the page on this machine only (127.0.0.1) until Ctrl-C, instead of writing a file."""
    port: int = 8765
    """Port to serve on; 0 takes a free one."""

    def __post_init__(self) -> None:
        if self.out.is_dir():
            raise PserError(f"--out names a file; {self.out} is a folder: use {self.out / 'playground.html'}")
        if not 0 <= self.port <= 65_535:
            raise PserError(f"a port lies from 0 to 65535, got {self.port}: choose one, or 0 for any")


def run(settings: Settings) -> None:
    """Write the page and name it, or serve it."""
    try:
        from pser.analysis.playground.page import render_playground
    except ModuleNotFoundError as error:
        raise PserError(f"the page needs {error.name}: pip install 'pser[report]'") from error
    text = render_playground()
    if settings.serve:
        with make_server(text, settings.port) as server:
            print(f"http://{HOST}:{server.server_port}/ (Ctrl-C ends it)", flush=True)
            server.serve_forever()
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    settings.out.write_text(text, encoding="utf-8")
    print(f"written: {settings.out} (open it in a browser)")


def make_server(text: str, port: int) -> ThreadingHTTPServer:
    """A server of one page, for this machine only."""
    try:
        return ThreadingHTTPServer((HOST, port), partial(_OnePage, text.encode()))
    except OSError as error:
        raise PserError(f"cannot serve on port {port} ({error.strerror}): choose another --port") from error


class _OnePage(BaseHTTPRequestHandler):
    """Answers every request for / with the page."""

    def __init__(self, page: bytes, *connection: Any) -> None:
        self.page = page
        super().__init__(*connection)

    def do_GET(self) -> None:
        """The page, or 404."""
        if self.path.split("?")[0] != "/":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: Any) -> None:
        """Say nothing of single requests."""
