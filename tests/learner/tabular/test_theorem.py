from dataclasses import replace

import numpy as np
import pytest

from pser.analysis.theorem.rows import exact_steps
from pser.analysis.theorem.steps import transitions
from pser.env.blind_cliffwalk import exhaustive_memory
from pser.errors import PserError
from pser.learner.tabular.theorem import PROCESSES, process_named, starting_index, steps_to_converge

CELLS = [
    (process, states, rho, eta)
    for process in PROCESSES
    for states in (1, 2, 5)
    for rho in ((None,) if process.strategy == "per" else (0.4, 0.8))
    for eta in process.etas
]


def test_theorem_starts_with_the_goal_at_one_and_its_own_episode_at_powers_of_rho():
    memory = exhaustive_memory(4, np.random.default_rng(0))
    goal = int(np.flatnonzero(memory.rewarded)[0])
    for name in ("pser_proof", "pser_proof_repeated", "pser_algorithm_once"):
        held = starting_index(process_named(name), memory, 0.5, 0.0).priority(np.arange(len(memory)))
        assert held[goal - 3 : goal + 1].tolist() == [0.125, 0.25, 0.5, 1.0]
        assert held.sum() == 1.875
    per = starting_index(process_named("per_proof"), memory, None, 0.0).priority(np.arange(len(memory)))
    assert per.sum() == per[goal] == 1.0


@pytest.mark.parametrize(("process", "states", "rho", "eta"), CELLS, ids=str)
def test_measured_means_agree_with_the_exact_values(process, states, rho, eta):
    exact = exact_steps(process, states, rho, eta)
    taken = steps_to_converge(process, states, rho, eta, 3000, 1)
    assert len(taken) == 3000
    assert taken.min() >= states
    if exact is None:
        assert process.eps > 0 or eta > 0  # everything else is known
        return
    error = taken.std(ddof=1) / np.sqrt(len(taken))
    assert abs(taken.mean() - exact) <= 4.5 * error + 1e-9


def test_the_same_seed_gives_the_same_repetitions():
    process = process_named("pser_proof")
    one, same, other = (steps_to_converge(process, 4, 0.4, 0.0, 50, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_any_positive_eps_makes_every_variant_wait_for_the_goal():
    # Before the goal is first drawn, all but n transitions keep mass ε^α against its (1+ε)^α.
    floor = (transitions(9) - 9) * (1e-4 / (1 + 1e-4)) ** 0.5
    for name, rho in (("per_paper", None), ("pser_paper_repeated", 0.8)):
        taken = steps_to_converge(process_named(name), 9, rho, 0.0, 400, 0)
        assert taken.mean() > floor + 9


def test_priority_collapse_makes_one_decay_slower_than_repeated_decay():
    once = steps_to_converge(process_named("pser_algorithm_once"), 8, 0.4, 0.0, 400, 0)
    kept = steps_to_converge(process_named("pser_algorithm_once"), 8, 0.4, 0.7, 400, 0)
    repeated = steps_to_converge(process_named("pser_algorithm_repeated"), 8, 0.4, 0.0, 400, 0)
    assert repeated.mean() < kept.mean() < once.mean()


def test_an_unknown_process_is_refused():
    with pytest.raises(PserError, match="choose one of"):
        process_named("magic")


def test_a_window_of_one_step_is_enough_when_priorities_decay_at_each_update():
    """Only the needed link then holds a priority: n draws, and ρ/(1+ρ) of one too early at the very start."""
    process = replace(process_named("pser_proof_repeated"), window=1)
    taken = steps_to_converge(process, 9, 0.4, 0.0, 4000, 0)
    assert set(taken.tolist()) == {9, 10}
    assert taken.mean() == pytest.approx(9 + 0.4 / 1.4, abs=0.03)
