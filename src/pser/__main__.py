"""`python -m pser` is the `pser` command."""

import sys

from pser.cli import main

sys.exit(main())
