"""`import pser` needs NumPy and nothing else."""

import subprocess
import sys

PROGRAM = """
import sys
import numpy, numpy.random
before = set(sys.modules)
import pser
new = {name.split(".")[0] for name in set(sys.modules) - before}
foreign = new - set(sys.stdlib_module_names) - {"numpy", "pser", "_kernel"}
# An editable install puts its own finder there; it is not a module of the package.
foreign = {name for name in foreign if "editable" not in name and "__mp_main__" != name}
print(sorted(foreign))
"""


def test_import_pser_adds_only_the_standard_library_numpy_and_itself():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_pser_is_silent():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import pser"], capture_output=True, text=True, check=True
    )
    assert done.stdout == done.stderr == ""


def test_every_public_name_is_there():
    import pser

    names = ["ReplayMemory", "PriorityIndex", "PSER", "PER", "Uniform"]
    names += ["AdaptiveWindow", "Anneal", "Array", "Frames", "PserError"]
    assert [name for name in names if not hasattr(pser, name)] == []
    assert set(names) <= set(pser.__all__)
