"""Put each fault of the catalogue into a copy of the source, and see that a test meets it.

    python tests/mutants/meet.py [--only WORD …] [--jobs N]

Prints a table, and fails if a fault survives, does not fit the source any more, or if the tests fail without any.
Several faults are met at a time, each in a copy that nobody else touches meanwhile.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "mutants"
TIMEOUT_SECONDS = 600
COPIED = ("src", "tests", "docs", "CMakeLists.txt", "pyproject.toml", "README.md")
PRECOMPILE = (
    b"target_precompile_headers(_kernel PRIVATE <nanobind/nanobind.h> <algorithm> <string> <vector>)\n"
)
# The editable install answers for `pser` before any path is looked at: it has to go first.
HOOK = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""


@dataclass(frozen=True)
class Mutant:
    """A fault: what it replaces, and the tests that must meet it."""

    name: str
    rule: str
    before: str
    after: str
    tests: list[str]

    @property
    def pattern(self):
        """`before`, whatever white space it is laid out with."""
        return re.compile(r"\s+".join(re.escape(word) for word in self.before.split()))

    def places(self, root):
        """The source files that hold `before`, once for each time."""
        sources = [path for path in (root / "src").rglob("*") if path.suffix in (".py", ".hpp", ".cpp")]
        return [
            path for path in sorted(sources) for _ in self.pattern.findall(path.read_text(encoding="utf-8"))
        ]

    def apply(self, path):
        """Put the fault in; returns the text as it was."""
        text = path.read_text(encoding="utf-8")
        path.write_text(self.pattern.sub(lambda _: self.after, text), encoding="utf-8")
        return text


def catalogue():
    """All faults."""
    with open(Path(__file__).with_name("catalogue.toml"), "rb") as file:
        return [Mutant(**entry) for entry in tomllib.load(file)["mutant"]]


class Copy:
    """A copy of the source and its compiled kernel, to put one fault at a time into."""

    def __init__(self, folder):
        self.folder, self.tree, self.cmake = folder, folder / "tree", folder / "cmake"
        self.compiled_with_fault = False

    def refresh(self):
        """Bring the copy up to date, touching only what differs, so that little has to be compiled again."""
        wanted = set()
        for name in COPIED:
            source = ROOT / name
            for path in [source] if source.is_file() else source.rglob("*"):
                if path.is_file() and path.suffix not in (".so", ".pyc"):
                    target = self.tree / path.relative_to(ROOT)
                    wanted.add(target)
                    content = path.read_bytes()
                    if name == "CMakeLists.txt":  # compiled often, run briefly
                        content = content.replace(b"-O3", b"-O0") + PRECOMPILE
                    if not target.exists() or target.read_bytes() != content:
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(content)
        for path in self.tree.rglob("*"):
            if path.is_file() and path not in wanted and path.suffix in (".py", ".hpp", ".cpp"):
                path.unlink()
        (self.folder / "hook").mkdir(exist_ok=True)
        (self.folder / "hook" / "sitecustomize.py").write_text(HOOK)

    def build(self):
        """Compile the kernel and put it beside the package; returns what went wrong, if anything."""
        commands = [["cmake", "--build", str(self.cmake)]]
        if not (self.cmake / "build.ninja").exists():
            nanobind = subprocess.run(
                [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
            )
            define = {
                "CMAKE_BUILD_TYPE": "Release",
                "Python_EXECUTABLE": sys.executable,
                "nanobind_DIR": nanobind.stdout.strip(),
            }
            options = [f"-D{name}={value}" for name, value in define.items()]
            where = ["-S", str(self.tree), "-B", str(self.cmake)]
            commands.insert(0, ["cmake", "-G", "Ninja", *where, *options])
        tools = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, env=tools)
            if done.returncode:
                return (done.stdout + done.stderr)[-2000:]
        for library in self.cmake.glob("_kernel*.so"):
            shutil.copy2(library, self.tree / "src" / "pser" / library.name)
        return ""

    def run_tests(self, tests):
        """(exit code, the first test that failed) of these tests against the copy."""
        paths = os.pathsep.join(str(path) for path in (self.folder / "hook", self.tree / "src"))
        environment = os.environ | {"PYTHONPATH": paths, "HYPOTHESIS_PROFILE": "mutants"}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
        command += [str(Path("tests") / name) for name in tests]
        try:
            done = subprocess.run(
                command,
                cwd=self.tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return 1, "hangs"
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if done.returncode < 0:
            return 1, f"crashes (signal {-done.returncode})"
        if done.returncode > 1:
            return done.returncode, done.stdout[-1500:]
        return done.returncode, failed[0].removeprefix("tests/") if failed else ""

    def meet(self, mutant):
        """(met, by what) of one fault."""
        places = mutant.places(self.tree)
        if len(places) != 1:
            return False, f"fits {len(places)} places: bring the catalogue up to date"
        (path,) = places
        before = mutant.apply(path)
        compiled = path.suffix != ".py"
        try:
            # A fault in Python must not be met by what the one before it left in the kernel.
            if (compiled or self.compiled_with_fault) and (wrong := self.build()):
                return False, f"does not compile: {wrong}"
            self.compiled_with_fault = compiled
            code, what = self.run_tests(mutant.tests)
        finally:
            path.write_text(before, encoding="utf-8")
        if code == 0:
            return False, "SURVIVES"
        return code == 1, what


def prepare(copy):
    """Bring a copy up to date and compile it; returns what went wrong, if anything."""
    copy.refresh()
    return copy.build()


def main():
    """Meet every fault, or those named; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="faults whose name holds one of these words")
    parser.add_argument(
        "--skip-clean", action="store_true", help="do not run the tests without a fault first"
    )
    parser.add_argument("--jobs", type=int, default=1, help="faults met at a time")
    options = parser.parse_args()
    mutants = [m for m in catalogue() if not options.only or any(word in m.name for word in options.only)]
    # Those of the kernel together, so that a Python one seldom waits for a compiler.
    mutants.sort(key=lambda mutant: any(path.suffix == ".py" for path in mutant.places(ROOT)))
    copies = [Copy(WORK / str(number)) for number in range(options.jobs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for wrong in pool.map(prepare, copies):
            if wrong:
                sys.exit(f"the kernel does not compile: {wrong}")
        if not options.skip_clean:
            code, what = copies[0].run_tests(sorted({name for mutant in mutants for name in mutant.tests}))
            if code:
                sys.exit(f"the tests fail without any fault: {what}")
        width = max(len(mutant.name) for mutant in mutants)
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def met_in_a_copy(mutant):
            copy, began = free.get(), time.monotonic()
            try:
                return mutant, *copy.meet(mutant), time.monotonic() - began
            finally:
                free.put(copy)

        survivors = []
        for done in as_completed([pool.submit(met_in_a_copy, mutant) for mutant in mutants]):
            mutant, met, what, seconds = done.result()
            survivors += [] if met else [mutant.name]
            print(f"{mutant.name:<{width}}  {seconds:5.0f} s  {what}", flush=True)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} faults met by a test")
    for name in survivors:
        print(f"not met: {name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
