"""The `pser` command itself: dispatch, exit codes, and errors in one line."""

import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import pser
from pser import cli
from pser.cli import COMMANDS, main
from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command of these tests takes."""

    size: int = 1
    """A number that must be positive."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise PserError(f"size is at least 1; got {self.size}: raise it")


@pytest.fixture
def command(monkeypatch):
    """A command `probe` whose `run` the test chooses."""

    def install(run):
        module = ModuleType("pser.cli.probe", "Does what a test asks of it.")
        module.Settings, module.run = Settings, run
        monkeypatch.setitem(sys.modules, "pser.cli.probe", module)
        monkeypatch.setitem(COMMANDS, "probe", "a test")

    return install


def raises(error):
    def run(settings):
        raise error

    return run


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error.strip()


def test_settings_reach_the_command(command):
    seen = []
    command(seen.append)
    assert main(["probe", "--size", "3"]) == 0
    assert seen == [Settings(size=3)]


def test_a_rule_broken_by_the_settings_is_one_line_and_the_command_is_not_run(command, capsys):
    seen = []
    command(seen.append)
    assert main(["probe", "--size", "0"]) == 2
    assert one_line(capsys) == "pser: size is at least 1; got 0: raise it"
    assert seen == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PserError("rho is too large: lower it"), "pser: rho is too large: lower it"),
        (FileNotFoundError(2, "No such file", "x.json"), "pser: [Errno 2] No such file: 'x.json'"),
        (ModuleNotFoundError(name="torch"), "pser: probe needs torch: pip install 'pser[all]'"),
    ],
)
def test_what_a_user_can_cause_is_one_line_and_exit_code_2(command, capsys, error, line):
    command(raises(error))
    assert main(["probe"]) == 2
    assert one_line(capsys) == line


@pytest.mark.parametrize("error", [ValueError("a bug"), ModuleNotFoundError(name="pser.nothing")])
def test_what_only_a_bug_can_cause_is_not_hidden(command, error):
    command(raises(error))
    with pytest.raises(type(error)):
        main(["probe"])


def test_an_interrupt_ends_quietly_with_130(command, capsys):
    command(raises(KeyboardInterrupt()))
    assert main(["probe"]) == 130
    assert capsys.readouterr().err == ""


def test_help_explains_each_option_by_its_docstring(command, capsys):
    command(print)
    with pytest.raises(SystemExit) as exit_:
        main(["probe", "--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    assert "Does what a test asks of it." in text
    assert "A number that must be positive." in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_the_same_wherever_it_is_asked_for_and_shows_no_empty_default(name, capsys):
    shown = []
    for words in (["--help"], ["some", "--help"], ["-h"]):
        with pytest.raises(SystemExit):
            main([name, *words])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert "default: none" not in " ".join(shown[0].replace("│", " ").split())


def test_usage_lists_every_command_once(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(COMMANDS)
    assert main([]) == 2


def test_every_command_has_a_module_with_settings_and_run():
    for name in COMMANDS:
        module = __import__(f"pser.cli.{name}", fromlist=["run"])
        assert callable(module.run)
        assert module.Settings
        assert module.__doc__


def test_an_unknown_command_names_the_known_ones(capsys):
    assert main(["fly"]) == 2
    line = one_line(capsys)
    assert "no command 'fly'" in line
    assert "cliffwalk" in line


def test_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pser {pser.__version__}\n"


def test_a_closed_pipe_ends_quietly():
    code = "from pser.cli import main; import sys; sys.stdin.readline(); sys.exit(main(['--help']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == cli.NOBODY_READS
