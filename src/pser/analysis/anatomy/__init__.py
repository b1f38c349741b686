"""What the priorities of a memory are made of: the arithmetic, and a simulation beside it."""
