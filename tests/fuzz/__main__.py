"""Load crafted files for a while: python -m tests.fuzz [--seconds 60] [--inputs N] [--seed 0] [--only NUMBER].

Every file has right checksums and wrong numbers. A fault is any error but PserError, a broken invariant afterwards,
more than a second for one file, or memory far beyond its size. The number of the file in hand stands in --at, so that
after a crash of the process --only runs it again.
"""

import argparse
import mmap
import random
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.crafted import Choices, mutated
from fuzz.target import seeds, try_file

LONGEST_SECONDS = 1.0
SPARE_BYTES = 128 << 20
"""Beyond twice the file's size: what the allocator may hold back, whatever is loaded."""


def main() -> None:
    """Fuzz; leave with 1 at the first fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--at", type=Path, default=Path("fuzz-at"))
    options = parser.parse_args()
    warnings.simplefilter("error")
    files, results = seeds(), Counter[str]()
    longest, before = 0.0, peak_bytes()
    end = time.monotonic() + options.seconds
    numbers = range(options.inputs) if options.only is None else [options.only]
    options.at.write_bytes(bytes(8))
    with open(options.at, "r+b") as file, mmap.mmap(file.fileno(), 8) as at:
        for number in numbers:
            at[:] = number.to_bytes(8, "little")
            data = mutated(files, Choices(random.Random(f"{options.seed}-{number}").randbytes(64)))
            started = time.process_time()
            try:
                results[try_file(data)] += 1
            except BaseException:
                traceback.print_exc()
                sys.exit(f"file {number} of seed {options.seed} is a fault")
            took, grown = time.process_time() - started, peak_bytes() - before
            longest = max(longest, took)
            if took > LONGEST_SECONDS:
                sys.exit(f"file {number} of seed {options.seed} took {took:.1f} s")
            if grown > 2 * len(data) + SPARE_BYTES:
                sys.exit(f"file {number} of seed {options.seed} took {grown >> 20} MB")
            if time.monotonic() > end:
                break
    options.at.unlink()
    told = ", ".join(f"{count} {name}" for name, count in results.items())
    print(
        f"{results.total()} crafted files: {told}; longest {longest * 1000:.0f} ms, memory grew by {grown >> 20} MB"
    )


def peak_bytes() -> int:
    """The most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
