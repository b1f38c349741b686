"""A bare `PriorityIndex` driven by hand, to hold an adapter against."""

import numpy as np

import pser


class Diary:
    """What an adapter did to its index, in order, to be done again to a bare one."""

    def __init__(self, index):
        self._index = index
        self.entries = []
        self._append, self._update, self._sample = index.append, index.update, index.sample
        index.append, index.update, index.sample = self.append, self.update, self.sample

    def append(self, first, *args, **kwargs):
        self.entries.append(("append",))
        return self._append(first, *args, **kwargs)

    def sample(self, batch_size, beta=0.5):
        ids, weights = self._sample(batch_size, beta)
        self.entries.append(("sample", batch_size, beta, ids.copy(), weights.copy()))
        return ids, weights

    def update(self, ids, td_errors):
        self.entries.append(("update", np.array(ids), np.array(td_errors)))
        return self._update(ids, td_errors)

    @property
    def updates(self):
        return sum(entry[0] == "update" for entry in self.entries)

    def replayed(self, firsts, seed):
        """A new bare index fed the same transitions; `firsts` are the episode starts, told without the adapter."""
        index = self._index
        bare = pser.PriorityIndex(index.capacity, index.prioritization, index.num_streams, seed)
        return self.replayed_on(bare, firsts)

    def replayed_on(self, bare, firsts):
        """The same on an index that already holds what came before the diary."""
        starts = iter(firsts)
        for kind, *values in self.entries:
            if kind == "append":
                first, stream = next(starts)
                bare.append(first, stream=stream)
            elif kind == "sample":
                batch_size, beta, ids, weights = values
                again_ids, again_weights = bare.sample(batch_size, beta)
                np.testing.assert_array_equal(again_ids, ids)
                np.testing.assert_array_equal(again_weights, weights)
            else:
                bare.update(*values)
        assert next(starts, None) is None
        return bare


def retained(index):
    """The ids now in an index."""
    return np.arange(index.oldest_id, index.next_id)


def assert_same_priorities(one, other):
    ids = retained(one)
    assert (one.oldest_id, one.next_id) == (other.oldest_id, other.next_id)
    np.testing.assert_array_equal(one.priority(ids), other.priority(ids))
    assert one.max_priority == other.max_priority
