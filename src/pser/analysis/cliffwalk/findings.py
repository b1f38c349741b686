"""Keep the tables of docs/findings.md equal to the committed results.

A table stands between `<!-- table: STUDY NAME -->` and `<!-- end -->`; STUDY is cliffwalk, more_seeds or theorem.
`python -m pser.analysis.cliffwalk.findings docs/findings.md results` writes them anew.
"""

import gzip
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pser.analysis.cliffwalk.tables import standard_tables
from pser.analysis.theorem.rows import theorem_tables
from pser.errors import PserError

CLIFFWALKS = {"cliffwalk": Path("cliffwalk"), "more_seeds": Path("cliffwalk", "more_seeds")}
"""The paper's setting, and fewer states with more seeds: study → folder of results."""
MARKED = re.compile(r"<!-- table: (\w+) (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of cliffwalk.json or theorem.json, plain or gzipped."""
    packed = path.with_name(path.name + ".gz")
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def result_tables(results: Path) -> dict[tuple[str, str], str]:
    """Every table of the committed results, by study and name."""
    theorem = theorem_tables(read_rows(results / "theorem" / "theorem.json"))
    named = {("theorem", name): table for name, table in theorem.items()}
    for study, folder in CLIFFWALKS.items():
        tables = standard_tables(read_rows(results / folder / "cliffwalk.json"))
        named |= {(study, name): table for name, table in tables.items()}
    return named


def fill_tables(text: str, tables: dict[tuple[str, str], str]) -> str:
    """`text` with every marked table as it should be."""

    def table(match: re.Match[str]) -> str:
        study, name = match.groups()
        if (study, name) not in tables:
            raise PserError(f"the results hold no table {study} {name}: see {study}.md for their names")
        return f"<!-- table: {study} {name} -->\n{tables[study, name]}\n<!-- end -->"

    return MARKED.sub(table, text)


def main(words: Sequence[str]) -> None:
    """Rewrite the page named first from the results folder named second."""
    page, results = Path(words[0]), Path(words[1])
    page.write_text(fill_tables(page.read_text(encoding="utf-8"), result_tables(results)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
