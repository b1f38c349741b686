"""Reward back-propagation against a slow model that moves each walker by itself."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pser
from pser.learner.kin.walkers import Walkers


class Slow:
    """A list of transitions, and a list of [where, reward it came from]."""

    def __init__(self, capacity):
        self.capacity, self.first, self.walkers = capacity, [], []

    @property
    def oldest(self):
        return max(0, len(self.first) - self.capacity)

    def add(self, first, rewarded):
        self.first.append(first)
        if rewarded:
            self.walkers.append([len(self.first) - 1] * 2)

    def replay(self, drawn):
        for walker in self.walkers:
            at, origin = walker
            if at in drawn:
                is_start = self.first[at] or at - 1 < self.oldest
                walker[0] = origin if is_start else at - 1
        best = {}
        for at, origin in self.walkers:
            if at >= self.oldest:
                best[at] = max(origin, best.get(at, -1))
        self.walkers = [[at, origin] for at, origin in best.items()]

    def high(self):
        return {at for at, _ in self.walkers if at >= self.oldest}


STEP = st.tuples(st.booleans(), st.booleans(), st.lists(st.integers(0, 30), max_size=4))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 12), st.lists(STEP, min_size=1, max_size=40))
def test_high_priorities_are_where_the_slow_model_has_them(capacity, steps):
    slow, walkers = Slow(capacity), Walkers()
    index = pser.PriorityIndex(capacity, pser.PER(alpha=1.0, eps=0.0))
    for number, (first, rewarded, choices) in enumerate(steps):
        first = first or number == 0
        (id_,) = index.append([first], [1.0 if rewarded else 0.01])
        slow.add(first, rewarded)
        walkers.start(np.array([id_]) if rewarded else np.array([], dtype=np.int64))
        drawn = sorted({index.oldest_id + choice % len(index) for choice in choices})
        if drawn:
            ids = np.array(drawn)
            fallen, risen = walkers.move(ids, index.predecessors(ids, 1)[:, 0], index.oldest_id)
            index.set_priorities(
                np.array(fallen + risen, dtype=np.int64), [0.01] * len(fallen) + [1.0] * len(risen)
            )
            slow.replay(drawn)
        alive = np.arange(index.oldest_id, index.next_id)
        assert set(alive[index.priority(alive) == 1.0].tolist()) == slow.high()


def test_a_reward_walks_to_the_start_and_begins_again():
    walkers, before = Walkers(), {0: -1, 1: 0, 2: 1}
    walkers.start(np.array([2]))
    seen = []
    for _ in range(5):
        (at,) = walkers.origin
        seen.append(at)
        walkers.move(np.array([at]), np.array([before[at]]), 0)
    assert seen == [2, 1, 0, 2, 1]
