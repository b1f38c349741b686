"""Every number of `stats()`, by hand and against the model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pser
from model import IndexModel
from strategies import (
    any_rules,
    append_both,
    as_prioritization,
    assert_same_stats,
    index_pair,
    memory_pair,
    update_both,
)

KEYS = {
    "size",
    "capacity",
    "added",
    "total_mass",
    "max_priority",
    "effective_sample_size",
    "decayed_share",
    "decayed_mass_seen",
    "decayed_mass_lost",
    "collapse",
    "age_mean",
    "age_median",
    "replays_mean",
    "replays_max",
    "never_replayed_share",
    "mass_from_insertion",
    "mass_from_retention",
    "mass_from_td_error",
    "mass_from_decay",
    "updates_applied",
    "updates_skipped_stale",
}


def test_every_statistic_is_there_and_an_empty_memory_has_them_too():
    index, _ = index_pair(4)
    stats = index.stats()
    assert set(stats) >= KEYS
    assert stats["size"] == stats["added"] == stats["total_mass"] == stats["collapse"] == 0
    assert (stats["capacity"], stats["max_priority"]) == (4, 1.0)
    assert all(np.isfinite(value) for value in stats.values())


def test_size_added_mass_and_maximum():
    index, model = index_pair(3, alpha=0.5, decay_on_insert=False)
    for p in [1.0, 4.0, 9.0, 16.0]:
        append_both(index, model, [True], priority=[p])
    stats = index.stats()
    assert (stats["size"], stats["capacity"], stats["added"]) == (3, 3, 4)
    assert stats["total_mass"] == 2 + 3 + 4
    assert stats["max_priority"] == 16.0


def test_effective_sample_size():
    index, model = index_pair(4, alpha=1.0, eps=0.0, eta=0.0, window=0)
    for _ in range(4):
        append_both(index, model, [True], priority=[1.0])
    assert index.stats()["effective_sample_size"] == pytest.approx(4.0)
    update_both(index, model, [0, 1, 2], [0.0, 0.0, 0.0])
    assert index.stats()["effective_sample_size"] == pytest.approx(1.0)
    update_both(index, model, [0], [3.0])
    assert index.stats()["effective_sample_size"] == pytest.approx(16 / 10)


def test_share_of_mass_that_came_from_backward_decay():
    index, model = index_pair(3, alpha=1.0, eps=0.0, eta=0.0, rho=0.5, window=5, decay_on_insert=False)
    for i in range(3):
        append_both(index, model, [i == 0], priority=[1.0])
    assert index.stats()["decayed_share"] == 0.0
    update_both(index, model, [2], [8.0])  # 2, 4, 8: of these 1 and 3 came by decay
    assert index.stats()["decayed_share"] == pytest.approx(4 / 14)


def by_source(index):
    stats = index.stats()
    return [round(stats[f"mass_from_{name}"], 9) for name in ("insertion", "retention", "td_error", "decay")]


def test_mass_by_source_counts_every_transition_once():
    index, model = index_pair(4, alpha=1.0, eps=0.0, eta=0.5, rho=0.5, window=5, decay_on_insert=False)
    assert by_source(index) == [0.0, 0.0, 0.0, 0.0]
    for i in range(4):
        append_both(index, model, [i < 2], priority=[1.0])
    assert by_source(index) == [1.0, 0.0, 0.0, 0.0]
    update_both(index, model, [3], [8.0])  # 1, 2, 4, 8: two of them raised by decay
    assert by_source(index) == [round(1 / 15, 9), 0.0, round(8 / 15, 9), round(6 / 15, 9)]
    update_both(index, model, [2], [0.0])  # η keeps 2 of 4
    assert by_source(index) == [round(1 / 13, 9), round(2 / 13, 9), round(8 / 13, 9), round(2 / 13, 9)]
    update_both(
        index, model, [2], [8.0]
    )  # and its own error takes over; what reaches 1 (4) is more than its 2
    assert by_source(index) == [round(1 / 21, 9), 0.0, round(16 / 21, 9), round(4 / 21, 9)]


def test_a_tie_between_retention_and_the_td_error_is_the_td_errors():
    index, model = index_pair(2, alpha=1.0, eps=0.0, eta=0.5, window=0)
    append_both(index, model, [True], priority=[1.0])
    update_both(index, model, [0], [0.5])
    assert by_source(index) == [0.0, 0.0, 1.0, 0.0]


def test_a_decay_that_raises_nothing_leaves_the_source():
    index, model = index_pair(2, alpha=1.0, eps=0.0, eta=0.0, rho=0.5, window=5, decay_on_insert=False)
    for i in range(2):
        append_both(index, model, [i == 0], priority=[1.0])
    update_both(index, model, [1], [2.0])  # hands down just what is held
    assert by_source(index) == [round(1 / 3, 9), 0.0, round(2 / 3, 9), 0.0]


def test_without_any_mass_the_shares_are_those_of_uniform_sampling():
    index, model = index_pair(4, eps=0.0, eta=0.0, window=0)
    for _ in range(4):
        append_both(index, model, [True], priority=[0.0])
    update_both(index, model, [0], [0.0])
    assert by_source(index) == [0.75, 0.0, 0.25, 0.0]


def test_uniform_replay_heeds_no_td_error():
    index, model = index_pair(2, kind="uniform")
    append_both(index, model, [True])
    update_both(index, model, [0], [5.0])
    assert by_source(index) == [1.0, 0.0, 0.0, 0.0]


def test_collapse_meters_the_decayed_mass_lost_at_the_next_update():
    for eta, lost in ((0.0, 3.0), (0.5, 2.0), (1.0, 0.0)):
        index, model = index_pair(3, alpha=1.0, eps=0.0, eta=eta, rho=0.5, window=5, decay_on_insert=False)
        for i in range(3):
            append_both(index, model, [i == 0], priority=[1.0])
        update_both(index, model, [2], [8.0])
        update_both(index, model, [1], [0.0])  # held 4, of which 3 came by decay; falls to 4η
        stats = index.stats()
        assert stats["decayed_mass_seen"] == pytest.approx(3.0)
        assert stats["decayed_mass_lost"] == pytest.approx(lost)
        assert stats["collapse"] == pytest.approx(lost / 3.0)


def test_age_is_that_of_what_would_be_sampled():
    index, model = index_pair(4, alpha=1.0, decay_on_insert=False)
    for p in [6.0, 1.0, 1.0, 2.0]:
        append_both(index, model, [True], priority=[p])
    stats = index.stats()
    assert stats["age_mean"] == pytest.approx((6 * 3 + 1 * 2 + 1 * 1 + 2 * 0) / 10)
    assert stats["age_median"] == 3


def test_replays_count_own_updates():
    index, model = index_pair(4, eps=0.0)
    for i in range(4):
        append_both(index, model, [i == 0])
    update_both(index, model, [3, 3, 1], [1.0, 1.0, 1.0])
    update_both(index, model, [3], [1.0])
    stats = index.stats()
    assert stats["replays_max"] == 2
    assert stats["replays_mean"] == pytest.approx(3 / 4)
    assert stats["never_replayed_share"] == pytest.approx(2 / 4)
    append_both(index, model, [True])
    append_both(index, model, [True])
    assert index.stats()["never_replayed_share"] == pytest.approx(3 / 4)


def test_updates_are_counted_applied_or_skipped():
    index, model = index_pair(2)
    for _ in range(3):
        append_both(index, model, [True])
    update_both(index, model, [0, 1, 1, 2], [1.0] * 4)
    stats = index.stats()
    assert (stats["updates_applied"], stats["updates_skipped_stale"]) == (3, 1)


def test_the_memory_has_the_same_statistics():
    memory, model = memory_pair(6, pser.Array((1,), np.float32), n_step=2)
    for t in range(9):
        row = (np.float32([t]), t, 0.0, np.float32([t + 1]), False, t == 5)
        memory.add(*row)
        model.add_row(0, *row)
    ids = memory.sample(16, beta=0.5).ids
    memory.update_priorities(ids, np.linspace(0, 3, 16))
    model.index.update(ids.tolist(), np.linspace(0, 3, 16).tolist())
    assert_same_stats(memory.stats(), model.index)


@given(rules=any_rules, capacity=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_any_history_gives_the_models_statistics(rules, capacity, seed):
    index = pser.PriorityIndex(capacity, as_prioritization(rules), num_streams=2, seed=seed)
    model = IndexModel(capacity, rules, 2)
    rng = np.random.default_rng(seed)
    for t in range(15):
        td = (rng.normal(size=2) ** 3).tolist()
        append_both(
            index, model, (rng.random(2) < (0.2 if t else 2.0)).tolist(), td_error=td if t % 2 else None
        )
        ids = rng.integers(max(0, index.oldest_id - 2), index.next_id, 6).tolist()
        update_both(index, model, ids, (rng.normal(size=6) ** 3).tolist())
        assert_same_stats(index.stats(), model)
