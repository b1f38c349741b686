"""The Python of the tutorial and the how-to pages runs as it stands, block by block in one namespace."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NEED_MORE = {"stable-baselines3.md", "torchrl.md", "tianshou.md"}
"""Pages whose code needs a library that is not among the extras; tests/integrations holds them."""
PAGES = [
    DOCS / "tutorial.md",
    DOCS / "inspect.md",
    *sorted(p for p in (DOCS / "how-to").glob("*.md") if p.name not in NEED_MORE),
]
SHORTENED = {
    "your-own-dqn.md": ("STEPS, WARMUP, GAMMA = 20_000, 500, 0.99", "STEPS, WARMUP, GAMMA = 300, 100, 0.99")
}
"""Page → (a line of it, the line that takes its place here)."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    code = "".join(blocks)
    if page.name in SHORTENED:
        long, short = SHORTENED[page.name]
        assert code.count(long) == 1
        code = code.replace(long, short)
    exec(compile(code, page.name, "exec"), {"__name__": page.stem})


def test_the_tutorial_shows_what_it_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile("".join(blocks[:2]), "tutorial.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[-1]
    assert printed in text
