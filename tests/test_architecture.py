"""The "may import" table of docs/architecture.md is true: every import of the package is in it."""

import ast
import functools
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pser"
STANDARD = sys.stdlib_module_names | {"_typeshed"}


def table():
    """Part → (parts of the package it may import, packages from elsewhere)."""
    rows = {}
    for line in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 4:
            part, _, own, foreign = cells
            (name,) = re.findall(r"`(\w+)`", part)
            rows[name] = set(re.findall(r"`(\w+)`", own)), set(re.findall(r"`(\w+)`", foreign))
    return rows


def imports_of(source, package=PACKAGE):
    """The dotted names a module imports, at its top or inside a function, whether run or only for types."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = ["pser", *source.relative_to(package).parts][: -node.level]
            yield from (".".join([*here, node.module or alias.name, alias.name]) for alias in node.names)


@functools.cache
def parts():
    """Part of the package → its modules. Files beside the folders, but for errors and spec, only join the others."""
    found = {}
    for source in sorted(PACKAGE.rglob("*.py")):
        inside = source.relative_to(PACKAGE)
        found.setdefault(inside.parts[0] if len(inside.parts) > 1 else inside.stem, []).append(source)
    return {name: sources for name, sources in found.items() if name not in ("__init__", "__main__")}


def part_of(dotted):
    """The part a name of the package belongs to: its own names (pser.PSER) are the memory's."""
    second = dotted.partition(".")[2].partition(".")[0]
    return second if second in {"_kernel", *parts()} else "memory"


def edges(name, sources):
    """(module, what it imports beyond its own part and the standard library), own parts as `pser.PART`."""
    for source in sources:
        for dotted in imports_of(source):
            top = dotted.split(".")[0]
            if top == "pser":
                if part_of(dotted) != name:
                    yield source, f"pser.{part_of(dotted)}"
            elif top not in STANDARD:
                yield source, top


def test_every_part_of_the_package_is_in_the_table():
    assert set(parts()) - set(table()) == set()
    assert set(table()) - set(parts()) == {"_kernel"}


@pytest.mark.parametrize("name", sorted(parts()))
def test_a_part_imports_only_what_the_table_allows(name):
    own, foreign = table()[name]
    allowed = {f"pser.{part}" for part in own} | foreign
    wrong = {
        f"{source.relative_to(PACKAGE)} imports {what}"
        for source, what in edges(name, parts()[name])
        if what not in allowed
    }
    assert sorted(wrong) == []


def test_the_arrows_of_the_table_form_no_circle():
    rows = {part: set(own) for part, (own, _) in table().items()}
    while rows:
        free = [part for part, own in rows.items() if not own & set(rows)]
        assert free, f"these import each other: {sorted(rows)}"
        for part in free:
            del rows[part]


def test_imports_inside_functions_and_for_types_are_seen(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from pser.run.training import start_run\n"
        "def f():\n    import torch.nn as nn\n    from pser import PSER\n"
    )
    found = {what for _, what in edges("memory", [module])}
    assert found == {"pser.run", "torch"}
    assert {what for _, what in edges("env", [module])} == {"pser.run", "torch", "pser.memory"}


@pytest.mark.parametrize(("page", "least"), [("architecture.md", 40), ("promises.md", 20)])
def test_every_file_that_the_page_names_exists(page, least):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:py|hpp|cpp|toml))`", text))
    assert len(named) >= least
    there = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*") if path.is_file()]
    endings = {"/".join(path.parts[-depth:]) for path in there for depth in range(1, 6)}
    assert sorted(named - endings) == []


def test_every_table_that_the_page_sends_a_change_to_exists():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name, file in re.findall(r"`([A-Z]+)` in `([\w/]+\.py)`", text):
        assert re.search(rf"^{name}\b", (PACKAGE / file).read_text(encoding="utf-8"), re.MULTILINE), name
