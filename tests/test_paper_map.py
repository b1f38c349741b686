"""Every name on the pages that tie the paper to the code exists: a renamed function cannot leave them behind."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`([\w/]+\.(?:py|hpp|cpp))::(\w+)`")
PAGES = {"paper-map.md": 100, "deviations.md": 20}


def place_of(path):
    return ROOT / ("src" if path.startswith(("kernel/", "pser/")) else "tests") / path


def defines(path, name):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.search(rf"^\s*(?:def|class) {name}\b", text, re.MULTILINE) is not None
    # A C++ declaration: a type or a return type before the name, at the start of a line.
    start = (
        r"^\s*(?:template <[^>]*>\s*)?(?:PSER_INLINE |inline |explicit |static |constexpr |struct |class )*"
    )
    return re.search(rf"{start}(?:[\w:<>,&*]+ )?{name}\b\s*[({{]", text, re.MULTILINE) is not None


@pytest.mark.parametrize("page", PAGES)
def test_every_function_and_test_named_on_the_page_exists(page):
    named = NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) >= PAGES[page]
    missing = [f"{path}::{name}" for path, name in named if not place_of(path).exists()]
    missing += [
        f"{path}::{name}" for path, name in named if not missing and not defines(place_of(path), name)
    ]
    assert missing == []


def test_a_name_that_is_only_called_does_not_count_as_defined():
    assert defines(ROOT / "src/kernel/decay.hpp", "decay_max")
    assert not defines(ROOT / "src/kernel/decaying.hpp", "decay_max")
    assert not defines(ROOT / "src/pser/memory/index.py", "as_flags")


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_the_pages_tables_has_a_test(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| paper |")]
    rows = [line for line in rows if not line.startswith("| point |")]
    assert rows
    assert [line for line in rows if "::test_" not in line.split(" | ")[-1]] == []
