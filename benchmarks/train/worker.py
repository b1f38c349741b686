"""One contender in its own process: each line in names a strategy to train a segment with, each line out answers."""

import json
import os
import sys
import warnings


def main() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")  # of the libraries under test
    from benchmarks.train.contenders import CONTENDERS, TASKS

    contender = CONTENDERS[sys.argv[2]](TASKS[sys.argv[1]])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(contender.segment(line.strip())), flush=True)


if __name__ == "__main__":
    main()
