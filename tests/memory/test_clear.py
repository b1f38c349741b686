"""`clear` forgets the transitions and what is unfinished, and nothing else; and what a memory says of itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from pser.errors import PserError
from strategies import any_rules, memory_pair

from .games import FrameGame, MemoryDriver


def forget(model):
    """What `clear` means, told to the model."""
    model.index.evict_before(model.index.next_id)
    model.index.last_of_stream.clear()
    model.pending.clear()
    model.in_episode.clear()


@given(
    rules=any_rules,
    capacity=st.integers(1, 25),
    n_step=st.integers(1, 3),
    before=st.integers(0, 40),
    after=st.integers(1, 40),
)
def test_after_clear_a_memory_goes_on_like_its_model(rules, capacity, n_step, before, after):
    memory, model = memory_pair(
        capacity, pser.Frames((2,), stack=3), num_envs=2, n_step=n_step, **vars(rules)
    )
    driver = MemoryDriver(memory, model, [FrameGame((2,), 3, seed=e) for e in range(2)])
    for t in range(before):
        driver.step(["terminated" if t % 5 == 4 else "", ""], td_error=[1.0, 0.5] if t % 2 else None)
    stale = np.arange(model.index.next_id)
    memory.clear()
    forget(model)
    assert len(memory) == 0
    assert memory.total_mass == 0.0
    memory.check_invariants()
    with pytest.raises(PserError, match="empty"):
        memory.sample(4)
    assert memory.update_priorities(stale, np.ones(len(stale))) == 0
    model.index.update(stale.tolist(), [1.0] * len(stale))
    for t in range(after):
        driver.step(["", "truncated" if t % 7 == 6 else ""])
    if len(memory):
        memory.check_invariants()
        driver.compare_priorities()
        driver.compare_batch(memory.sample(16))


def test_a_memory_tells_what_it_is():
    memory = pser.ReplayMemory(
        1_000_000, {"screen": pser.Frames((84, 84)), "n": pser.Array((), np.int64)}, num_envs=8
    )
    text = repr(memory)
    for part in ("0 of 1,000,000", "84", "num_envs=8", "n_step=1", "PSER("):
        assert part in text
    assert "\n" not in text
