"""`make test-compilers`: the kernel built by each compiler, without a warning, tested, and the same bits from each.

The priority index alone (digest.cpp) is compiled also for aarch64 and run in an emulator. With names as arguments
only those compilers are tried: `compare.py g++-11`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "compilers"
FLAGS = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-psabi",
]
TESTS = [
    "tests/memory",
    "tests/learner/tabular/test_q_learning.py",
    "tests/learner/test_rmsprop_kernel.py",
    "tests/learner/test_planes_kernel.py",
    "tests/learner/test_noise_kernel.py",
]

NATIVE = {"g++-11": "g++-11", "g++-12": "g++-12", "clang++": "clang"}
"""Compiler and the Debian package it comes with."""
CROSS = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu"}
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]


def output(command: list[str], **environment: str) -> str:
    """What the command prints; its failure ends the comparison."""
    print("  ", *command, flush=True)
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")
    return done.stdout


def index_digests(compiler: str) -> dict[str, str]:
    """The lines of digest.cpp, by how it was run."""
    program = str(BUILD / f"digest-{compiler}")
    output([compiler, *FLAGS, str(HERE / "digest.cpp"), "-o", program])
    if compiler in CROSS:
        return {f"{compiler}, emulated": output([*EMULATOR, program])}
    return {compiler: output([program]), f"{compiler}, portable": output([program], PSER_PORTABLE="1")}


def memory_digest(compiler: str) -> str:
    """Build the whole kernel, run the memory's tests on it, and return the digests of its memories."""
    folder = BUILD / compiler
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    how = ["--no-build-isolation", "--no-deps", "--target", str(folder)]
    how += ["-C", "cmake.define.PSER_WERROR=ON", "-C", f"build-dir={BUILD / f'cmake-{compiler}'}"]
    output([*pip, *how, "."], CXX=compiler)
    path = {"PYTHONPATH": str(folder)}
    *digests, compiled_by = output([sys.executable, str(HERE / "memory_digest.py")], **path).splitlines()
    print("  ", compiled_by, flush=True)
    print(output([sys.executable, "-m", "pytest", "-q", *TESTS], **path).splitlines()[-1], flush=True)
    return "\n".join(digests)


def same(results: dict[str, str]) -> None:
    """All results are one, or the comparison fails and names the odd ones."""
    first, *others = results
    odd = [name for name in others if results[name] != results[first]]
    if odd:
        sys.exit(f"{first} gives\n{results[first]}\nbut {odd[0]} gives\n{results[odd[0]]}")


def main() -> None:
    """Try every compiler asked for; all of them must be there."""
    known = {**NATIVE, **CROSS}
    asked = sys.argv[1:] or list(known)
    missing = [known.get(name, name) for name in asked if shutil.which(name) is None]
    if any(name in CROSS for name in asked) and shutil.which(EMULATOR[0]) is None:
        missing.append("qemu-user")
    if missing:
        sys.exit(f"compilers are missing: apt-get install {' '.join(missing)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    indexes: dict[str, str] = {}
    memories: dict[str, str] = {}
    for compiler in asked:
        print(compiler, flush=True)
        indexes.update(index_digests(compiler))
        if compiler not in CROSS:
            memories[compiler] = memory_digest(compiler)
    same(indexes)
    if memories:
        same(memories)
    print(f"the same bits from {', '.join(indexes)}")


if __name__ == "__main__":
    main()
