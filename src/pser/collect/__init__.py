"""From environments into a memory: every step added once, with its true next observation."""

from pser.collect.vector import VectorRecorder

__all__ = ["VectorRecorder"]
