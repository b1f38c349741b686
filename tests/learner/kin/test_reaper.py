"""ReaPER against its definition, computed anew from whole episodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pser.learner.kin.reaper import Episodes
from pser.learner.kin.reliability import raw_priorities, reliability
from pser.learner.kin.rules import ReaPER


def slow_priority(sizes, at, rule):
    """(|δ|^α · R^ω)^(1/α), R = 1 − later / all, with sums written out."""
    later = sum(sizes[at + 1 :])
    share = 1 - later / sum(sizes) if sum(sizes) else 1.0
    return (sizes[at] ** rule.alpha * max(share, 0.0) ** rule.omega) ** (1 / rule.alpha)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20), st.floats(0.1, 1), st.floats(0, 1))
def test_priorities_of_an_episode_follow_the_definition(sizes, alpha, omega):
    rule = ReaPER(alpha=alpha, omega=omega)
    found = raw_priorities(np.array(sizes), rule)
    slow = [slow_priority(sizes, at, rule) for at in range(len(sizes))]
    np.testing.assert_allclose(found, slow, rtol=1e-6, atol=1e-9 * (1 + max(sizes)))


def test_the_last_target_is_fully_reliable_and_omega_zero_is_per():
    sizes = np.array([1.0, 3.0, 4.0])
    assert reliability(sizes).tolist() == [1 / 8, 4 / 8, 1.0]
    assert raw_priorities(sizes, ReaPER(omega=0.0)) == pytest.approx(sizes)


STEP = st.tuples(
    st.tuples(st.booleans(), st.booleans()),
    st.lists(st.tuples(st.integers(0, 30), st.floats(0, 5)), max_size=4),
    st.booleans(),
    st.integers(0, 3),
)


@settings(max_examples=150, deadline=None)
@given(st.integers(4, 12), st.lists(STEP, min_size=1, max_size=30))
def test_every_stored_priority_is_that_of_its_episode_now(capacity, steps):
    rule, episodes = ReaPER(), Episodes(2, capacity)
    sizes, episode_of, running, next_number = {}, {}, [0, 1], 2
    held, oldest = {}, 0
    for number, (ended, updates, afresh, gone) in enumerate(steps):
        if afresh:
            episodes.end()
            running, next_number = [next_number, next_number + 1], next_number + 2
        ids = [2 * number, 2 * number + 1]
        episodes.add(ids, 1.0, ended)
        for env, id_ in enumerate(ids):
            sizes[id_], episode_of[id_], held[id_] = 1.0, running[env], 1.0
            if ended[env]:
                running[env], next_number = next_number, next_number + 1
        # As many as have no slot are gone, and some whose frames were overwritten.
        oldest = min(max(oldest + gone, 2 * (number + 1) - capacity), 2 * number)
        alive = range(oldest, 2 * (number + 1))
        chosen = {oldest + choice % len(alive): size for choice, size in updates}
        if not chosen:
            continue
        sizes.update(chosen)
        drawn = np.array(sorted(chosen))
        found_ids, found = episodes.learned(
            drawn, np.array([chosen[id_] for id_ in drawn.tolist()]), rule, oldest
        )
        held.update(zip(found_ids.tolist(), found.tolist(), strict=True))
        for touched in {episode_of[id_] for id_ in chosen}:
            members = [id_ for id_ in alive if episode_of[id_] == touched]
            for at, id_ in enumerate(members):
                slow = slow_priority([sizes[member] for member in members], at, rule)
                assert held[id_] == pytest.approx(slow, rel=1e-6, abs=1e-8)
