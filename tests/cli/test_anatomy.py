"""`pser anatomy`: what the priorities are made of."""

import re

import pytest

import pser
from pser.analysis.anatomy.arithmetic import Surprises
from pser.analysis.anatomy.page import Case
from pser.analysis.anatomy.text import evenness_text
from pser.cli import main


def shares_in(printed):
    """Source → share, of the first four that are printed."""
    found = re.findall(r"^  (.+?) +(\d+\.\d)%", printed, re.MULTILINE)
    return {name: float(share) / 100 for name, share in found[:4]}


def test_it_prints_the_shares_of_given_settings(capsys):
    assert main(["anatomy", "--eta", "0.3", "--batch-size", "32", "--update-period-steps", "4"]) == 0
    printed = capsys.readouterr().out
    assert "η = 0.3, ρ = 0.4: 8 replays a life" in printed
    shares = shares_in(printed)
    assert list(shares) == ["insertion", "η's retention", "own TD error", "decay"]
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.002)
    assert shares["insertion"] == pytest.approx(
        1 / 8, abs=0.02
    )  # those never replayed of eight replays a life


def test_only_what_came_by_decay_can_be_retained(capsys):
    assert main(["anatomy"]) == 0
    everything = shares_in(capsys.readouterr().out)
    assert main(["anatomy", "--retain", "decayed"]) == 0
    printed = capsys.readouterr().out
    assert "η = 0.7 of what came by decay, ρ = 0.4: 8 replays a life" in printed
    assert shares_in(printed)["decay"] > 5 * everything["decay"]
    assert "at the end of a life" not in printed  # insertion is not held up


def test_it_takes_the_settings_and_errors_of_a_run_and_shows_what_it_recorded(run, capsys):
    assert main(["anatomy", "--run", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "32 replays a life" in printed
    _, recorded = printed.split(f"as recorded by {run}, at its end:")
    assert sum(shares_in(recorded).values()) == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize(
    ("window", "told"), [("2", "felt 2.0 steps back"), ("50", "felt 3.1 steps back"), ("0", "")]
)
def test_decay_is_felt_no_further_back_than_the_window(window, told, capsys):
    assert main(["anatomy", "--window", window]) == 0
    printed = capsys.readouterr().out
    assert told in printed
    assert ("steps back" in printed) == bool(told)


@pytest.mark.parametrize(
    ("ratio", "told"), [(0.1, "rota"), (0.7, "more even"), (0.99, "as by chance"), (1.5, "less even")]
)
def test_replays_are_called_even_only_if_they_are(ratio, told):
    assert told in evenness_text(ratio)


def test_what_uniform_replay_holds_is_not_predicted():
    assert Case("uniform", pser.Uniform()).predicted(Surprises()) is None
    assert Case("PER", pser.PER()).predicted(Surprises()) == pytest.approx(1 / 8, abs=0.01)


@pytest.mark.parametrize(
    "flags",
    [["--td-median", "0"], ["--run", "nowhere"], ["--eta", "2"], ["--run", "nowhere", "--eta", "0"]],
)
def test_mistakes_end_with_one_line(flags, capsys):
    assert main(["anatomy", *flags]) == 2
    assert capsys.readouterr().err.startswith("pser: ")
