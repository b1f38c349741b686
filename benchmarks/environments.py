"""The pinned environments the libraries run in: made once, and made again when a pin changes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peer import JAX, MAIN, TORCHRL

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment and what is in it."""

    folder: Path
    """Where it is made."""
    constraints: Path
    """Every version in it."""
    packages: tuple[str, ...]
    """What is asked for by name."""
    with_pser: bool
    """Whether this project is built and installed into it."""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


ENVIRONMENTS = {
    MAIN: Environment(
        folder=ROOT / ".venv-bench",
        constraints=HERE / "constraints.txt",
        packages=(
            *("cpprb", "tianshou", "ReplayTables-andnp", "torch", "numpy", "ale-py"),
            *(
                "stable-baselines3",
                "sb3-contrib",
                "tensordict",
                "torchrl",
            ),  # for the adapters; TorchRL's own tree needs the other one
            *("scikit-build-core", "nanobind", "cmake", "ninja"),
        ),
        with_pser=True,
    ),
    TORCHRL: Environment(
        folder=ROOT / ".venv-bench-torchrl",
        constraints=HERE / "constraints-torchrl.txt",
        packages=("torchrl", "torch", "numpy"),
        with_pser=False,
    ),
    JAX: Environment(
        folder=ROOT / ".venv-bench-jax",
        constraints=HERE / "constraints-jax.txt",
        packages=("jax", "optax", "gymnax", "flashbax", "six"),  # gymnax forgets to ask for the last
        with_pser=False,
    ),
}


def ensure(name: str) -> Path:
    """The interpreter of an environment, made or brought up to date first."""
    environment = ENVIRONMENTS[name]
    pins = _digest([environment.constraints], " ".join(environment.packages) + sys.version)
    if _changed(environment.folder / "pins.stamp", pins):
        print(f"making {environment.folder.name} from {environment.constraints.name}", flush=True)
        venv.create(environment.folder, clear=True, with_pip=True)
        _pip(environment, "install", "-c", str(environment.constraints), *environment.packages)
        (environment.folder / "pins.stamp").write_text(pins)
    if environment.with_pser:
        _install_pser(environment)
    return environment.python


def _install_pser(environment: Environment) -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".cpp", ".hpp"}]
    built = _digest([*sources, ROOT / "CMakeLists.txt", ROOT / "pyproject.toml"], "")
    stamp = environment.folder / "pser.stamp"
    if _changed(stamp, built):
        print(f"building pser into {environment.folder.name}", flush=True)
        options = ["--no-build-isolation", "--no-deps", "--force-reinstall", "-Cbuild-dir=build/bench"]
        _pip(environment, "install", *options, str(ROOT))
        stamp.write_text(built)


def _changed(stamp: Path, content: str) -> bool:
    return not stamp.exists() or stamp.read_text() != content


def _digest(files: list[Path], extra: str) -> str:
    digest = hashlib.sha256(extra.encode())
    for file in sorted(files):
        digest.update(file.as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _pip(environment: Environment, *arguments: str) -> None:
    subprocess.run([environment.python, "-m", "pip", "-qq", *arguments], check=True, cwd=ROOT)
