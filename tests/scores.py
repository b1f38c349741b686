"""Scores of runs made up, as training spreads them."""

import numpy as np


def by_task(matrix):
    """A (runs × tasks) matrix as the aggregates take it."""
    return list(np.asarray(matrix, dtype=np.float64).T)


def normal(rng, runs):
    """Seeds around a mean."""
    return rng.normal(7.0, 1.0, runs)


def skewed(rng, runs):
    """A few seeds far above the others."""
    return rng.lognormal(0.0, 1.5, runs)


def all_or_nothing(rng, runs):
    """Whether a run takes off is a coin toss; what it then reaches varies a little."""
    return np.where(rng.random(runs) < 0.5, 0.0, rng.normal(20.0, 1.0, runs))


DISTRIBUTIONS = (normal, skewed, all_or_nothing)
