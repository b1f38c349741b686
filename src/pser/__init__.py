"""Prioritized Sequence Experience Replay (Brittain et al. 2019): an exact and fast replay memory.

Importing this package needs NumPy and the compiled kernel, nothing else.
"""

from pser.errors import DamagedFileError, PserError
from pser.memory.batch import Batch
from pser.memory.index import PriorityIndex
from pser.memory.prioritization import PER, PSER, AdaptiveWindow, Prioritization, Uniform
from pser.memory.replay import ReplayMemory
from pser.memory.schedule import Anneal
from pser.memory.sequences import SequenceBatch
from pser.memory.tensors import TensorBatch, TensorSequences
from pser.spec import Array, Frames

__version__ = "0.1.0"

__all__ = [
    "PER",
    "PSER",
    "AdaptiveWindow",
    "Anneal",
    "Array",
    "Batch",
    "DamagedFileError",
    "Frames",
    "Prioritization",
    "PriorityIndex",
    "PserError",
    "ReplayMemory",
    "SequenceBatch",
    "TensorBatch",
    "TensorSequences",
    "Uniform",
]
