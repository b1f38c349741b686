"""Where and how torch computes."""

from typing import Literal

import torch
from torch import Tensor

from pser.errors import PserError
from pser.learner.allocation import keep_freed_memory


def configure_torch(device: Literal["auto", "cpu", "cuda"], threads: int) -> torch.device:
    """Set torch's threads for this process and choose the device."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    # The running averages of units that died fall below the smallest normal number, where arithmetic is slow.
    torch.set_flush_denormal(True)
    if device == "cuda" and not torch.cuda.is_available():
        raise PserError("device cuda was asked for, but torch sees no GPU: use --device auto or cpu")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.deterministic = True  # the same run again gives the same network
    return torch.device(device)


def kernel_reads(tensor: Tensor) -> bool:
    """Whether the kernel can read the tensor's numbers: float32, one piece of the computer's own memory."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
