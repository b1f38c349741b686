"""Random settings for the tests, and the one place where the model's rules become the package's settings."""

import numpy as np
from hypothesis import strategies as st

import pser
from model import Adaptive, IndexModel, MemoryModel, Rules

# Floors no power of a test's ρ can hit exactly: at equality one rounding would decide.
WINDOWS = [0, 1, 3, 5, 50, None, Adaptive(floor=0.0123456789), Adaptive(floor=0.31415926, limit=2)]


def settle(value: float) -> float:
    """Next to nothing is nothing: the inverse of a probability like 1e-310 is beyond any float."""
    return value if abs(value) > 1e-100 else 0.0


td_errors = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, -3.0, 1e-12, 1e6]),
    st.floats(min_value=-10.0, max_value=10.0).map(settle),
)
given_priorities = st.one_of(
    st.sampled_from([0.0, 1.0, 0.25, 7.0]),
    st.floats(min_value=0.0, max_value=10.0).map(settle),
)

pser_rules = st.builds(
    Rules,
    alpha=st.sampled_from([0.0, 0.01, 0.5, 0.6, 1.0]),
    eps=st.sampled_from([0.0, 1e-4, 0.1]),
    eta=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    rho=st.sampled_from([0.0, 0.4, 0.65, 0.8, 0.95]),
    window=st.sampled_from(WINDOWS),
    decay=st.sampled_from(["max", "add"]),
    retain=st.sampled_from(["all", "decayed"]),
    decay_from=st.sampled_from(["td", "priority"]),
    decay_on_insert=st.booleans(),
    stratified=st.booleans(),
    weights=st.sampled_from(["batch", "memory"]),
)
per_rules = st.builds(
    Rules,
    kind=st.just("per"),
    alpha=st.sampled_from([0.0, 0.5, 0.6, 1.0]),
    eps=st.sampled_from([0.0, 1e-4, 0.1]),
    stratified=st.booleans(),
    weights=st.sampled_from(["batch", "memory"]),
)
rank_rules = st.builds(
    Rules,
    kind=st.just("rank"),
    alpha=st.sampled_from([0.0, 0.5, 0.7, 1.0]),
    eps=st.sampled_from([0.0, 1e-4, 0.1]),
    stratified=st.booleans(),
    weights=st.sampled_from(["batch", "memory"]),
)
uniform_rules = st.builds(Rules, kind=st.just("uniform"), stratified=st.booleans())
any_rules = st.one_of(pser_rules, per_rules, rank_rules, uniform_rules)


def as_prioritization(rules: Rules) -> "pser.PSER | pser.PER | pser.Uniform":
    """The package's settings for the model's rules."""
    if rules.kind == "uniform":
        return pser.Uniform(stratified=rules.stratified)
    if rules.kind in ("per", "rank"):
        return pser.PER(
            alpha=rules.alpha,
            eps=rules.eps,
            variant="rank" if rules.kind == "rank" else "proportional",
            stratified=rules.stratified,
            weights=rules.weights,
        )
    window = rules.window
    if isinstance(window, Adaptive):
        window = pser.AdaptiveWindow(floor=window.floor, limit=window.limit)
    return pser.PSER(
        alpha=rules.alpha,
        eps=rules.eps,
        eta=rules.eta,
        rho=rules.rho,
        window=window,
        decay=rules.decay,
        retain=rules.retain,
        decay_from=rules.decay_from,
        decay_on_insert=rules.decay_on_insert,
        stratified=rules.stratified,
        weights=rules.weights,
    )


def index_pair(
    capacity: int, *, num_streams: int = 1, seed: int = 0, **rules
) -> tuple["pser.PriorityIndex", IndexModel]:
    """The same index twice: the package's and the model's."""
    stated = Rules(**rules)
    index = pser.PriorityIndex(capacity, as_prioritization(stated), num_streams=num_streams, seed=seed)
    return index, IndexModel(capacity, stated, num_streams)


def append_both(index, model, first, stream=None, *, priority=None, td_error=None) -> list[int]:
    """The same rows to both; the ids they agree on."""
    ids = index.append(
        np.asarray(first, bool),
        None if priority is None else np.asarray(priority, float),
        None if stream is None else np.asarray(stream, np.int64),
        td_error=None if td_error is None else np.asarray(td_error, float),
    )
    expected = model.append(first, stream, priority, td_error)
    assert ids.dtype == np.int64
    assert ids.tolist() == expected
    return expected


def update_both(index, model, ids, td_errors) -> int:
    """The same update to both; how many rows they agree to have applied."""
    applied = index.update(np.asarray(ids, np.int64), np.asarray(td_errors, float))
    assert applied == model.update(ids, td_errors)
    return applied


def set_both(index, model, ids, priorities) -> int:
    """The same raw priorities to both; how many rows they agree to have applied."""
    applied = index.set_priorities(np.asarray(ids, np.int64), np.asarray(priorities, float))
    assert applied == model.set_priorities(ids, priorities)
    return applied


def assert_same_index(index, model, *, rel: float = 1e-12) -> None:
    """Everything an index lets one read equals the model's."""
    index.check_invariants()
    assert len(index) == len(model)
    assert index.next_id == model.next_id
    assert index.oldest_id == model.oldest_id
    np.testing.assert_allclose(index.max_priority, model.max_priority, rtol=rel, atol=0)
    np.testing.assert_allclose(index.total_mass, model.total_mass(), rtol=rel, atol=0)
    ids = np.asarray(model.ids, np.int64)
    if len(ids) == 0:
        return
    expected = [model.priority(i) for i in model.ids]
    np.testing.assert_allclose(index.priority(ids), expected, rtol=rel, atol=0)
    np.testing.assert_allclose(
        index.probabilities(ids), list(model.probabilities().values()), rtol=rel, atol=0
    )


def assert_valid_draw(model: IndexModel, ids, uniforms) -> None:
    """Every id has a positive probability, and its share of the mass contains its target."""
    assert_covers(model, ids, model.targets(uniforms))


def assert_covers(model: IndexModel, ids, positions) -> None:
    """Every id has a positive probability, and its share of the mass contains its position."""
    bounds = model.cumulative_bounds()
    probabilities = model.probabilities()
    for transition, target in zip(ids, positions, strict=True):
        assert probabilities[transition] > 0.0
        if model.rules.kind == "rank":
            continue  # the ranks' order along the mass is the kernel's own business
        below, above = bounds[transition]
        assert below - 1e-9 <= target <= above + 1e-9


def memory_pair(
    capacity: int, observation, action=None, *, num_envs=1, n_step=1, gamma=0.99, seed=0, **rules
) -> tuple["pser.ReplayMemory", MemoryModel]:
    """The same memory twice: the package's and the model's."""
    stated = Rules(**rules)
    memory = pser.ReplayMemory(
        capacity=capacity,
        observation=observation,
        action=pser.Array((), np.int64) if action is None else action,
        num_envs=num_envs,
        prioritization=as_prioritization(stated),
        n_step=n_step,
        gamma=gamma,
        seed=seed,
    )
    return memory, MemoryModel(capacity, stated, num_envs, n_step, gamma)


def assert_same_stats(stats: dict[str, float], model: IndexModel) -> None:
    """Every statistic equals the model's; what came by decay is metered in single precision."""
    total = max(model.total_mass(), model.decayed_mass_seen, 1e-300)
    probabilities = model.probabilities() if len(model) else {}
    tied = sum(p for transition, p in probabilities.items() if model.entries[transition].tied)
    tolerance = {
        "decayed_share": 1e-6,
        **dict.fromkeys(model.mass_by_source(), 1e-9 + tied),
        "decayed_mass_seen": 1e-6 * total * (len(model) + 1),
        "decayed_mass_lost": 1e-6 * total * (len(model) + 1),
        # A quotient of two such numbers says something only if the lower one is not itself rounding.
        "collapse": 1e-3 if model.decayed_mass_seen > 1e-3 * total else 1.0,
    }
    if len(model):
        assert abs(sum(stats[name] for name in model.mass_by_source()) - 1.0) <= 1e-12
    for name, expected in model.stats().items():
        allowed = tolerance.get(name, 1e-12 * max(1.0, abs(expected)))
        assert abs(stats[name] - expected) <= allowed, (name, stats[name], expected)
    if len(model):
        assert model.is_median_age(stats["age_median"])
