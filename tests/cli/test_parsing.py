"""Command lines into settings: numbers as people write them, mistakes in one line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from pser.cli import main
from pser.cli.parsing import UNSET, one_line, parse, whole_number
from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What these tests parse."""

    frames: int = 3
    """A count."""
    window: int | Literal["derived", "adaptive"] | None = None
    """A count or a word."""
    share: float = 0.5
    """A share."""
    hidden: tuple[int, ...] = (1,)
    """Several counts."""
    out: Annotated[Path | None, UNSET] = None
    """A path."""


def read(*words):
    return parse(Settings, "probe", "What it does.", words)


@pytest.mark.parametrize("text", ["1000000", "1_000_000", "1e6", "1E+6", "10e5", "1000000.0"])
def test_a_count_is_read_however_it_is_written(text):
    assert whole_number(text) == 1_000_000
    assert read("--frames", text).frames == 1_000_000


@pytest.mark.parametrize("text", ["1.5", "abc", "nan", "inf", "1e400000000", "9" * 5000, "1e19", ""])
def test_what_is_no_count_is_refused_in_one_short_line(text):
    with pytest.raises(
        PserError, match="--frames: it is a whole number, such as 1000000 or 1e6, got"
    ) as error:
        read("--frames", text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--window", "wide"],
            "--window: it is a whole number, such as 1000000 or 1e6, got 'wide', or it is one of",
        ),
        (["--share", "much"], "--share: could not convert string to float: 'much'"),
        (["--hidden", "3", "x"], "--hidden"),
        (["--fraems", "3"], "--fraems, 3: did you mean --frames?"),
        (["--frames"], "Missing value for argument '--frames'"),
        (["stray"], "Unrecognized options: stray"),
        (["--out", "a\0b"], "NUL"),
    ],
)
def test_a_wrong_flag_is_one_line(words, said):
    with pytest.raises(PserError) as error:
        read(*words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_flag_of_several_types_takes_each():
    assert read("--window", "7").window == 7
    assert read("--window", "derived").window == "derived"
    assert read().window is None


def test_help_shows_no_none(capsys):
    with pytest.raises(SystemExit) as stop:
        read("--help")
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--window INT|derived|adaptive" in text
    assert "--out PATH" in text
    assert "None" not in text


def test_a_wrong_flag_of_a_command_is_one_line_and_exit_code_2(capsys):
    assert main(["train", "gym:CartPole-v1", "--frames", "many"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pser: Error parsing --frames/--budget-frames: it is a whole number")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "box",
    [
        "╭─ Title ─╮\n│ one       │\n│ two.      │\n│ ───────── │\n│ three     │\n╰───────────╯\n",
        " Title \n ------- \n  one\n  two.\n  -----\n  three\n\n",
        "\x1b[31m╭─ Title ─╮\x1b[0m\n\x1b[31m│\x1b[0m one two. │\n│ ───────── │\n│ three │\n╰──╯\n",
    ],
)
def test_of_a_box_its_first_section_is_said(box):
    assert one_line(box) == "one two"
