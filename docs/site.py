"""Hooks of the documentation build: what lies outside docs/ joins the site, and links to it follow.

The home page is the README; CONTRIBUTING, CHANGELOG, CITATION.cff and the committed results are taken as they are; the
playground is the page that `pser playground` writes.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from pser.analysis.playground.page import render_playground

ROOT = Path(__file__).parents[1]
JOINING = ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE")
RESULTS = {".png", ".svg", ".json", ".md", ".csv", ".html"}


def on_files(files: Files, config: Any) -> Files:
    """Add the files that lie outside docs/."""
    paths = [ROOT / name for name in JOINING]
    paths += sorted(path for path in (ROOT / "results").rglob("*") if path.suffix in RESULTS)
    for path in paths:
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    files.append(File.generated(config, "assets/playground.html", content=render_playground()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the README in its place, and turn links written for the repository into links of the site."""
    uri = page.file.src_uri
    if uri == "index.md":
        markdown = markdown.replace("<!-- README -->", (ROOT / "README.md").read_text(encoding="utf-8"))
    if uri == "index.md" or uri in JOINING:
        return re.sub(r"(\]\()docs/", r"\1", markdown)
    depth = uri.count("/")
    return re.sub(r"(\]\()" + r"\.\./" * (depth + 1) + r"(?!\.)", r"\1" + "../" * depth, markdown)
