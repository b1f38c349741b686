"""`pser anatomy`: what the priorities are made of."""

import pytest

from pser.cli import main


def test_it_prints_the_shares_of_given_settings(capsys):
    assert main(["anatomy", "--eta", "0.3", "--batch-size", "32", "--update-period-steps", "4"]) == 0
    printed = capsys.readouterr().out
    assert "8 replays a life" in printed
    assert "| η = 0.3 |" in printed


def test_it_takes_the_settings_and_errors_of_a_run(run, capsys):
    assert main(["anatomy", "--run", str(run)]) == 0
    assert "32 replays a life" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [["--td-median", "0"], ["--run", "nowhere"], ["--eta", "2"]])
def test_mistakes_end_with_one_line(flags, capsys):
    assert main(["anatomy", *flags]) == 2
    assert capsys.readouterr().err.startswith("pser: ")
