"""The paper's score table, recomputed and checked."""
