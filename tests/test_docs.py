"""Every Python block of the documentation runs as it stands, and every command it names exists."""

import json
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.train.family import with_costs

from pser.cli import COMMANDS, main

DOCS = Path(__file__).parents[1] / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVERY_PAGE = sorted(DOCS.rglob("*.md"))
NEED_MORE = {"stable-baselines3.md", "torchrl.md", "tianshou.md", "rllib.md", "offline-data.md", "jax.md"}
"""Pages whose code needs a library that is not among the extras; tests/integrations holds them."""
PAGES = [
    page
    for page in EVERY_PAGE
    if page.name not in NEED_MORE and PYTHON.search(page.read_text(encoding="utf-8"))
]
SHORTENED = {
    "your-own-dqn.md": ("STEPS, WARMUP, GAMMA = 20_000, 500, 0.99", "STEPS, WARMUP, GAMMA = 300, 100, 0.99"),
    "training.md": ('"budget_frames": 100_000', '"budget_frames": 1_000'),
}
"""Page → (a line of it, the line that takes its place here)."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "".join(PYTHON.findall(page.read_text(encoding="utf-8")))
    if page.name in SHORTENED:
        long, short = SHORTENED[page.name]
        assert code.count(long) == 1
        code = code.replace(long, short)
    exec(compile(code, page.name, "exec"), {"__name__": page.stem})


def test_the_tutorial_shows_what_it_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    blocks = PYTHON.findall(text)
    exec(compile("".join(blocks[:2]), "tutorial.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[-1]
    assert printed in text


def shell_commands():
    """(page, command) of every line in a shell block."""
    for page in EVERY_PAGE:
        for block in SHELL.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                command = re.sub(r"\s+#.*", "", line).strip()
                if command:
                    yield page.relative_to(DOCS).as_posix(), command


def test_the_pages_with_code_are_found():
    names = {page.name for page in PAGES}
    assert {"tutorial.md", "training.md", "environments.md", "inspect.md", "saving.md"} <= names
    assert len(list(shell_commands())) >= 4


@pytest.mark.parametrize(("page", "command"), list(shell_commands()))
def test_a_command_of_a_page_is_understood(page, command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(command)
    assert program in ("pser", "pip", "make", "python", "git"), command
    if program == "make":
        makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[0]}:.*##", makefile, re.MULTILINE), command
    if program == "python":
        assert words[0] == "-m" or (DOCS.parent / words[0]).exists(), command
    if program == "pser":
        monkeypatch.setattr(import_module(f"pser.cli.{words[0]}"), "run", lambda _: None)
        assert main(words) == 0, capsys.readouterr().err


def test_every_command_that_is_named_exists():
    named = {
        (page.name, found)
        for page in [*EVERY_PAGE, DOCS.parent / "README.md"]
        for found in re.findall(r"`pser ([a-z]+)\b", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert [(page, found) for page, found in sorted(named) if found not in COMMANDS] == []


def test_mathematical_stars_are_escaped():
    """An optimal value Q\\* or count k\\* is no emphasis: a bare star would turn the text up to the next one italic."""
    root = DOCS.parent
    pages = [*DOCS.rglob("*.md"), *(root / "results").rglob("*.md"), root / "README.md"]
    meant = re.compile(r"`[^`]*`|(?<![\w*\\])\*{1,2}\w(?:\\\*|[^*])*\*{1,2}(?!\w)")  # code, and emphasis
    bare = re.compile(r"(?<![\w\\])[A-Za-zπ]\*")
    found = [
        f"{page.relative_to(root)}:{number}: {line}"
        for page in pages
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        if bare.search(meant.sub("", line))
    ]
    assert found == []


def test_the_costs_of_the_agents_are_those_that_were_measured():
    measured = json.loads((DOCS / "benchmarks-train.json").read_text(encoding="utf-8"))["family"]
    page = (DOCS / "agents.md").read_text(encoding="utf-8")
    assert page == with_costs(page, measured)
