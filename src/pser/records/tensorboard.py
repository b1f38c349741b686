"""TensorBoard events beside the JSON records, if the tensorboard package is installed."""

import shutil
import warnings
from pathlib import Path
from typing import Any


class TensorBoard:
    """Writes every number of a row under its name; without the package, or switched off, writes nothing."""

    def __init__(self, folder: Path, *, enabled: bool, frames: int) -> None:
        self._writer: Any = None
        if not enabled:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of tensorboard's own imports
                from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        # What an interrupted run wrote after its checkpoint is hidden by the purge; without a checkpoint all is void.
        if not frames:
            shutil.rmtree(folder, ignore_errors=True)
        self._writer = SummaryWriter(str(folder), purge_step=frames + 1 if frames else None)

    def add(self, group: str, row: dict[str, Any]) -> None:
        """Write the numbers of a row at its frames; nested rows under nested names."""
        if self._writer is not None:
            for name, value in numbers_of(group, row).items():
                self._writer.add_scalar(name, value, row["frames"])

    def close(self) -> None:
        """Write what is pending and close the file."""
        if self._writer is not None:
            self._writer.close()


def numbers_of(group: str, row: dict[str, Any]) -> dict[str, float]:
    """The numbers of a row but its frames, nested rows under nested names: {"train/memory/size": 3}."""
    numbers: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            numbers |= numbers_of(f"{group}/{name}", value)
        elif isinstance(value, int | float) and name != "frames":
            numbers[f"{group}/{name}"] = value
    return numbers
