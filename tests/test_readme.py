"""The README is executed: every command, shortened by the flags below, and its Python as it stands."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from pser.cli import main
from pser.studies.findings import START

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

TINY = "--frames 600 --warmup-steps 100 --capacity 1000 --log-period-frames 300 --eval-period-frames 600"
TINY += " --checkpoint-period-frames 0 --tensorboard off"
TINY_MINATAR = TINY + " --num-envs 4 --eval-episodes 2 --eval-num-envs 2"
TINY_ATARI = TINY + " --eval-frames 0 --eval-episodes 1 --max-episode-steps 50"

SHORTENED = {
    "pser train minatar:breakout --replay pser --run-dir runs/breakout": TINY_MINATAR,
    "pser train --resume runs/breakout": "",
    "pser evaluate runs/breakout --episodes 200": "--episodes 4",
    "pser watch runs/breakout --out breakout.gif": "--max-steps 5",
    "pser sweep --envs minatar:breakout minatar:freeway --replay uniform per pser --seeds 0 1 2 --jobs 2"
    " --out runs/sweep": "--envs minatar:breakout --replay per pser --seeds 0 " + TINY_MINATAR,
    "pser report runs/sweep --out report.html": "--resamples 50",
    "pser playground --out playground.html": "",
    "pser inspect runs/breakout --out inspect.html": "",
    "pser paper --out results/paper": "--resamples 50",
    "pser cliffwalk --out results/cliffwalk": "--states 4 --seeds 2 --jobs 1",
    "pser theorem --out results/theorem": "--states 2..3 --repetitions 20 --rho 0.4 --jobs 1",
    "pser train atari:Seaquest --preset paper --replay pser --run-dir runs/seaquest": TINY_ATARI,
    "pser sweep --envs atari:Seaquest --replay per pser --initial max td --decay max add --seeds 0"
    " --out runs/ablation": "--replay pser --initial td --decay add " + TINY_ATARI,
    "pser report runs/ablation --format md --score best --out ablation.md": "--resamples 50",
}
"""Each `pser` command of the README → flags that shorten it; a flag given here takes the place of the README's own."""

PROMISED = (
    "runs/breakout/final.json",
    "breakout.gif",
    "report.html",
    "playground.html",
    "inspect.html",
    "results/paper/paper.md",
    "results/cliffwalk/curves.png",
    "results/theorem/theorem_proof.png",
    "runs/seaquest/manifest.json",
    "ablation.md",
)


def fenced(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def shell_commands():
    lines = [re.sub(r"\s+#.*", "", line) for block in fenced("sh") for line in block.splitlines()]
    return [line for line in lines if line]


def without_flag(words, flag):
    """The words less a flag and the values behind it."""
    if flag not in words:
        return words
    start = words.index(flag)
    end = next((k for k in range(start + 1, len(words)) if words[k].startswith("--")), len(words))
    return words[:start] + words[end:]


def shortened(command):
    words, extra = shlex.split(command)[1:], shlex.split(SHORTENED[command])
    for flag in extra:
        if flag.startswith("--"):
            words = without_flag(words, flag)
    return words + extra


def test_every_shell_command_is_of_a_kind_that_is_checked():
    assert {shlex.split(command)[0] for command in shell_commands()} == {"make", "pip", "pser"}


def test_every_pser_command_has_flags_that_shorten_it_and_none_is_left_over():
    assert [command for command in shell_commands() if command.startswith("pser ")] == list(SHORTENED)


def test_every_pser_command_works_in_the_order_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in SHORTENED:
        code = main(shortened(command))
        assert code == 0, f"{command}: {capsys.readouterr().err}"
    assert [path for path in PROMISED if not (tmp_path / path).exists()] == []


def test_every_make_target_is_one_that_make_help_lists():
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"\bmake ([a-z-]+)", TEXT)
    assert {"demo", "test"} <= set(named)
    assert set(named) <= set(targets)


def test_every_extra_that_pip_is_asked_for_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = re.findall(r"\.\[(\w+)\]", TEXT)
    assert asked
    assert set(asked) <= set(extras["optional-dependencies"])


def test_every_interval_among_the_results_is_that_of_the_committed_results_or_of_pser_paper(tmp_path):
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8").replace("−", "-")
    results = results.partition(START)[0]  # what is written from the studies' records has its own test
    intervals = re.findall(r"[+-]?[\d.]+(?: points)? \[[^]]+\]", results)
    assert len(intervals) == 15
    assert main(["paper", "--out", str(tmp_path)]) == 0
    sources = (tmp_path / "paper.md").read_text(encoding="utf-8").replace(" points", "").replace("%", "")
    for records in ("results/cliffwalk/more_seeds/cliffwalk.md", "results/minatar/README.md"):
        sources += (ROOT / records).read_text(encoding="utf-8")
    assert [found for found in intervals if found.replace(" points", "") not in sources] == []


def test_the_benchmarks_are_at_least_as_good_as_the_readme_says():
    section = TEXT[TEXT.index("## Benchmarks") : TEXT.index("## Citation")]
    said = [float(number) for number in re.findall(r"^\| .* \| ([\d.]+) \|$", section, re.MULTILINE)]
    report = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    targets = (
        "learn step, `PriorityIndex`",
        "learn step, `ReplayMemory`",
        "`add` of a step of 64",
        "learn step of 32 sequences",
        "frame batch: faster",
    )
    measured = [
        float(re.search(rf"^\| {re.escape(t)}.*?\| ([\d.]+)×", report, re.M).group(1)) for t in targets
    ]
    assert len(said) == len(targets)
    assert all(least <= found for least, found in zip(said, measured, strict=True))


def test_what_compressed_frames_take_is_what_the_benchmarks_measured():
    report = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    held, times = re.findall(r"^\| compressed frames of .* \| ([\d.]+)×?, ", report, re.MULTILINE)
    said = re.search(
        r"takes (\d+) bytes on average .* (\S+) of the time of plain ones", " ".join(TEXT.split())
    )
    assert said.groups() == (held, times)


@pytest.mark.parametrize("code", fenced("python"))
def test_python_runs_as_it_stands(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["memory"].stats()["updates_applied"] == 32


def test_every_file_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert len(links) >= 10
    assert [link for link in links if not (ROOT / link).exists()] == []
