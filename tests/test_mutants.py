"""The faults of `make mutants` still fit the source, and name tests that exist."""

from pathlib import Path

import pytest

from mutants.meet import ROOT, catalogue

TESTS = Path(__file__).parent
MUTANTS = catalogue()


def test_there_are_at_least_forty_faults_each_with_a_name_of_its_own():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_fits_one_place_of_the_source_and_its_tests_exist(mutant):
    assert len(mutant.places(ROOT)) == 1
    assert mutant.before != mutant.after
    assert [name for name in mutant.tests if not (TESTS / name).exists()] == []


def test_a_fault_follows_its_line_however_it_is_laid_out(tmp_path):
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "no-epsilon")
    source = tmp_path / "src" / "moved.hpp"
    source.parent.mkdir()
    source.write_text("double f() {\n  return\n    std::fabs(td_error)   + eps;\n}\n")
    assert mutant.places(tmp_path) == [source]
    mutant.apply(source)
    assert source.read_text() == "double f() {\n  return std::fabs(td_error);\n}\n"
