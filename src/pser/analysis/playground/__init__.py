"""The rules of the memory to play with, on one page."""
