from pathlib import Path

import pytest

from pser.analysis.cliffwalk.findings import CLIFFWALKS, MARKED, fill_tables, main, read_rows, result_tables
from pser.errors import PserError

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tables():
    return result_tables(ROOT / "results")


def test_every_table_of_the_findings_is_that_of_the_committed_results(tables):
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert len(MARKED.findall(text)) >= 10
    assert fill_tables(text, tables) == text


@pytest.mark.parametrize(
    ("study", "states", "count"),
    [("cliffwalk", {13, 14, 15, 16}, 10), ("more_seeds", {13, 14}, 40)],
)
def test_committed_results_are_paired_and_complete(study, states, count):
    rows = read_rows(ROOT / "results" / CLIFFWALKS[study] / "cliffwalk.json")
    seeds = {}
    for row in rows:
        key = (row["agent"], row["rho"], row["eta"], row["decay"], row["init"], row["states"])
        seeds.setdefault(key, set()).add(row["seed"])
    assert {key[5] for key in seeds} == states
    assert all(held == set(range(count)) for held in seeds.values())
    assert all(None not in row["crossings"].values() for row in rows)


def test_a_stale_table_is_replaced_and_the_rest_left_alone(tables):
    text = "before\n<!-- table: theorem bounds -->\nold\n<!-- end -->\nafter\n"
    filled = fill_tables(text, tables)
    assert filled.startswith("before\n<!-- table: theorem bounds -->\n| process |")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert "old" not in filled


def test_an_unknown_table_is_refused(tables):
    with pytest.raises(PserError, match="no table theorem nothing"):
        fill_tables("<!-- table: theorem nothing -->\n<!-- end -->", tables)


def test_the_page_is_rewritten_in_place(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("pser.analysis.cliffwalk.findings.result_tables", lambda results: tables)
    page = tmp_path / "page.md"
    page.write_text("<!-- table: theorem agreement -->\n<!-- end -->\n", encoding="utf-8")
    main([str(page), str(ROOT / "results")])
    assert "largest z, either sign" in page.read_text(encoding="utf-8")
