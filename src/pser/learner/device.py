"""Where and how torch computes."""

from typing import Literal

import torch

from pser.errors import PserError


def configure_torch(device: Literal["auto", "cpu", "cuda"], threads: int) -> torch.device:
    """Set torch's threads for this process and choose the device."""
    torch.set_num_threads(threads)
    # The running averages of units that died fall below the smallest normal number, where arithmetic is slow.
    torch.set_flush_denormal(True)
    if device == "cuda" and not torch.cuda.is_available():
        raise PserError("device cuda was asked for, but torch sees no GPU: use --device auto or cpu")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)
