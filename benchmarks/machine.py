"""What a benchmark runs on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> dict[str, object]:
    """Processor, cores, system, and how busy it was."""
    models = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    ]
    cpu = models[0].split(":", 1)[1].strip() if models else platform.processor()
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average_before": os.getloadavg()[0],
    }


def in_words(described: dict[str, object]) -> str:
    """The machine in a line of text."""
    return f"{described['cpu']}, {described['cores']} cores, {described['system']}"
