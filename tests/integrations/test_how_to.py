"""The programs of the how-to pages for other libraries: at most 40 lines, the same as in examples/, and they run."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "stable-baselines3.md": ("stable_baselines3", "sb3_cartpole.py", "1100"),
    "torchrl.md": ("torchrl", "torchrl_cartpole.py", "256"),
    "tianshou.md": ("tianshou", "tianshou_cartpole.py", "5"),
    "rllib.md": ("lz4", "rllib_cartpole.py", "1"),
}
"""Page → (module it needs, example of the same program, small budget)."""


def programs_of(page):
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(path, *arguments, folder=None):
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", [*PROGRAMS, "cleanrl.md"])
def test_a_program_has_at_most_forty_lines(page):
    assert [
        len(program.splitlines()) for program in programs_of(page) if len(program.splitlines()) > 40
    ] == []


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_program_of_a_page_is_the_example(page):
    [program] = programs_of(page)
    example = (ROOT / "examples" / PROGRAMS[page][1]).read_text(encoding="utf-8")
    assert example.partition("\n\n")[2] == program


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_program_of_a_page_runs(page):
    module, example, budget = PROGRAMS[page]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    assert re.search(r"mean return over 20 episodes: \d", run(ROOT / "examples" / example, budget))


def test_the_memory_part_of_the_one_file_example_runs(tmp_path):
    program, current_td = programs_of("cleanrl.md")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    assert float(run(tmp_path / "program.py")) > 1.0
    (tmp_path / "program.py").write_text(program + current_td, encoding="utf-8")
    run(tmp_path / "program.py")


def test_the_program_of_the_page_on_offline_data_runs(tmp_path):
    pytest.importorskip("minari")
    [program] = programs_of("offline-data.md")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    run(tmp_path / "program.py", folder=tmp_path)
    assert (tmp_path / "datasets" / "example" / "steps-v0").is_dir()


@pytest.mark.parametrize("prioritization", ["pser", "per", "uniform"])
def test_the_one_file_example_trains(prioritization):
    options = ["--total-timesteps", "400", "--learning-starts", "200", "--eval-episodes", "2"]
    printed = run(
        ROOT / "examples" / "cleanrl_dqn.py", *options, "--prioritization", prioritization, "--n-step", "3"
    )
    assert re.search(r"mean return over 2 episodes: \d", printed)


@pytest.mark.parametrize(("options", "solved"), [([], True), (["--feed-forward"], False)])
def test_the_recurrent_example_solves_its_task_and_without_memory_it_cannot(options, solved):
    printed = run(
        ROOT / "examples" / "recurrent_dqn.py", "--steps", "400", "--seeds", "0", "1", "2", *options
    )
    score = float(re.search(r"mean return over seeds: (-?\d\.\d+)", printed).group(1))
    assert score > 0.9 if solved else abs(score) < 0.3
    assert len((ROOT / "examples" / "recurrent_dqn.py").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_jax_example_runs():
    for module in ("jax", "flax", "optax"):
        pytest.importorskip(module)
    printed = run(ROOT / "examples" / "jax_dqn.py", "1100")
    assert re.search(r"mean return over 20 episodes: \d", printed)
