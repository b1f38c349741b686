"""What is kept of a tabular run while a plain loop goes on: the error's curve, and when it crossed its thresholds."""

import numpy as np

from pser.learner.tabular.q_learning import TabularRun, TabularSettings


class Watch:
    """Counts iterations until the error has crossed every threshold, or there are too many."""

    def __init__(self, settings: TabularSettings, max_iterations: int, error: float) -> None:
        """`error`: before the first iteration."""
        self._settings, self._most = settings, max_iterations
        self._curve, self._crossings = [error], list[int]()
        self._first_reward: int | None = None
        self._iterations = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._iterations >= self._most or len(self._crossings) == len(self._settings.thresholds)

    def learned(self, error: float, *, rewarded: bool) -> None:
        """One more iteration: the error after it, and whether the replayed transition had the reward."""
        self._iterations += 1
        if rewarded and self._first_reward is None:
            self._first_reward = self._iterations
        self._crossings += [
            self._iterations
            for threshold in self._settings.thresholds[len(self._crossings) :]
            if error < threshold
        ]
        if self._iterations % self._settings.record_every == 0:
            self._curve.append(error)

    def run(self) -> TabularRun:
        """What the run left behind."""
        missing = [None] * (len(self._settings.thresholds) - len(self._crossings))
        return TabularRun(
            crossings=(*self._crossings, *missing),
            first_reward=self._first_reward,
            iterations=self._iterations,
            curve=np.array(self._curve),
        )
