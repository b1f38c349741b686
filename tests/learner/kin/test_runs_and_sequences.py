"""Introspective runs and the library of sequences against brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pser.learner.kin.introspective import run_back
from pser.learner.kin.library import Library


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 4), st.integers(0, 60))
def test_a_run_goes_back_through_one_environment_to_the_oldest(pivot, steps, num_envs, oldest):
    oldest = min(oldest, pivot)
    slow, at = [], pivot
    while at >= oldest and len(slow) < steps:
        slow.append(at)
        at -= num_envs
    assert run_back(pivot, steps, num_envs, oldest).tolist() == slow


@given(
    st.integers(1, 5),
    st.lists(st.lists(st.tuples(st.integers(0, 20), st.floats(-5, 5)), max_size=6), max_size=8),
)
def test_the_library_holds_the_largest_latest_surprises(size, batches):
    library, latest = Library(size), {}
    for number, batch in enumerate(batches):
        ids = np.array([id_ for id_, _ in batch], dtype=np.int64)
        surprises = np.array([surprise for _, surprise in batch])
        library.consider(ids, surprises, oldest=number)
        kept = {id_: latest[id_] for id_ in latest}
        for id_ in set(ids.tolist()):
            kept[id_] = max(abs(s) for i, s in batch if i == id_)
        ranked = sorted((-s, -id_) for id_, s in kept.items() if id_ >= number)[:size]
        latest = {-id_: -s for s, id_ in ranked}
        assert library.ends == latest
