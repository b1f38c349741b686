"""Closed forms of Theorem 1's processes against a Markov chain over every transition of the memory."""

import numpy as np
import pytest

from pser.analysis.theorem import steps as theorem
from pser.env.blind_cliffwalk import discount, exhaustive_memory

RHOS = (0.2, 0.4, 0.5, 0.8)


class Chain:
    """Every state (pairs learned, priority of each transition) that a process can reach, on a real memory.

    `own` says what a drawn transition's priority becomes: "settled" (0), "found" (|δ| before the update) or
    "kept" (0 if it taught anything, else unchanged). With `repeated` the found |δ| decays at each update.
    """

    def __init__(self, states, rho, own, repeated):
        self.n, self.rho, self.own, self.repeated = states, rho, own, repeated
        self.memory = exhaustive_memory(states, np.random.default_rng(0))
        self.gamma = discount(states)

    def predecessors(self, i):
        while not self.memory.first[i]:
            i -= 1
            yield i

    def decayed(self, p, i, delta):
        for steps, j in enumerate(self.predecessors(i), start=1):
            p[j] = max(p[j], self.rho**steps * delta)

    def start(self):
        goal = int(np.flatnonzero(self.memory.rewarded)[0])
        p = [0.0] * len(self.memory)
        p[goal] = 1.0
        if self.rho is not None:
            self.decayed(p, goal, 1.0)
        return 0, tuple(p)

    def after(self, state, i):
        learned, p = state[0], list(state[1])
        distance = self.n - 1 - int(self.memory.state[i])
        teaches = bool(self.memory.right[i]) and distance == learned
        delta = self.gamma**distance if teaches else 0.0
        if self.own == "settled" or (self.own == "kept" and teaches):
            p[i] = 0.0
        elif self.own == "found":
            p[i] = delta
        if self.repeated and delta > 0.0:
            self.decayed(p, i, delta)
        return learned + teaches, tuple(p)

    def expected_steps(self):
        """Solve E = 1 + P·E over all states that are not yet converged."""
        places, rows = {self.start(): 0}, []
        frontier = [self.start()]
        while frontier:
            state = frontier.pop()
            total = sum(state[1])
            chances = [p / total for p in state[1]] if total > 0 else [1 / len(state[1])] * len(state[1])
            for i, chance in enumerate(chances):
                if chance == 0.0:
                    continue
                following = self.after(state, i)
                if following[0] == self.n:
                    continue
                if following not in places:
                    places[following] = len(places)
                    frontier.append(following)
                rows.append((places[state], places[following], chance))
        moves = np.zeros((len(places), len(places)))
        for here, there, chance in rows:
            moves[here, there] += chance
        return float(np.linalg.solve(np.eye(len(places)) - moves, np.ones(len(places)))[0])


@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_printed_per_formula_is_exact_for_the_proofs_process(states):
    exact = Chain(states, None, "settled", False).expected_steps()
    assert theorem.proof_per(states) == pytest.approx(exact, rel=1e-10)
    assert theorem.printed_per(states) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_per_of_algorithm_1_draws_each_discovery_once_more(states):
    exact = Chain(states, None, "found", False).expected_steps()
    assert theorem.algorithm_per(states) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_pser_with_one_decay_loses_what_is_drawn_too_early(states, rho):
    exact = Chain(states, rho, "settled", False).expected_steps()
    assert theorem.proof_pser(states, rho) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("states", [1, 2, 3, 4, 5])
def test_pser_with_decay_at_each_update_is_exact_also_beyond_gamma(states, rho):
    for own, value in (
        ("settled", theorem.proof_pser_repeated(states, rho, discount(states))),
        ("found", theorem.algorithm_pser_repeated(states, rho, discount(states), 0.0)),
    ):
        assert value == pytest.approx(Chain(states, rho, own, True).expected_steps(), rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_pser_of_algorithm_1_with_one_decay_is_exact(states, rho):
    exact = Chain(states, rho, "found", False).expected_steps()
    assert theorem.algorithm_pser_once(states, rho, discount(states)) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_main_bound_is_exact_if_early_draws_keep_their_priority(states, rho):
    exact = Chain(states, rho, "kept", False).expected_steps()
    assert theorem.kept_pser(states, rho) == pytest.approx(exact, rel=1e-10)
    assert theorem.printed_bound_main(states, rho) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("states", [5, 6, 7])
def test_closed_forms_equal_the_enumeration_of_links(states, rho):
    gamma = discount(states)
    assert rho <= gamma
    for drops, value in (
        (True, theorem.proof_pser_repeated(states, rho, gamma)),
        (False, theorem.algorithm_pser_repeated(states, rho, gamma, 0.0)),
    ):
        enumerated = theorem.links_drawn(states, rho, gamma, drops_when_learned=drops)
        assert value == pytest.approx(enumerated, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_printed_bounds_are_their_double_sums(n, rho):
    for value, ratio in (
        (theorem.printed_bound_main(n, rho), rho),
        (theorem.printed_bound_appendix(n, rho), 2 * rho),
    ):
        assert value == pytest.approx(
            sum(ratio**k for i in range(1, n + 1) for k in range(n - i + 1)), rel=1e-9
        )


def test_the_two_printed_bounds_differ_and_the_appendix_is_not_linear_above_one_half():
    assert theorem.printed_bound_appendix(12, 0.4) > 2 * theorem.printed_bound_main(12, 0.4)
    assert theorem.printed_bound_appendix(40, 0.8) / theorem.printed_bound_appendix(39, 0.8) > 1.59
    slope = theorem.printed_bound_main(400, 0.8) - theorem.printed_bound_main(399, 0.8)
    assert slope == pytest.approx(1 / (1 - 0.8))  # not 1, as "→ n" has it


def test_in_order_probability_is_one_over_the_rho_factorial():
    assert theorem.in_order_probability(1, 0.4) == 1.0
    assert theorem.in_order_probability(3, 0.4) == pytest.approx(1 / (1.4 * 1.56))


@pytest.mark.parametrize("rho", RHOS)
def test_one_decay_leaves_pser_exponential_by_a_constant_factor(rho):
    # lim proof_pser / proof_per = 1 − Σ_{k≥1} 2^−k/[k+1]_ρ!: all that PSER gains over PER.
    limit = 1.0 - sum(2.0**-k * theorem.in_order_probability(k + 1, rho) for k in range(1, 60))
    assert 0.2 < limit < 1.0
    assert theorem.proof_pser(40, rho) / theorem.proof_per(40) == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("rho", [0.05, *RHOS, 0.99])
def test_pser_is_faster_than_per_in_the_proofs_process_from_two_states_on(rho):
    for n in range(2, 40):
        assert theorem.proof_pser(n, rho) < theorem.proof_per(n)


@pytest.mark.parametrize("rho", RHOS)
def test_main_bound_fails_for_one_decay_and_holds_for_decay_at_each_update(rho):
    for n in range(2, 30):
        assert theorem.proof_pser(n, rho) > theorem.printed_bound_main(n, rho)
        repeated = theorem.proof_pser_repeated(n, rho, discount(n))
        assert repeated <= theorem.printed_bound_main(n, rho)


def test_enumeration_gives_up_above_its_limit_and_says_so():
    assert theorem.links_drawn(theorem.MAX_CHAIN_STATES + 1, 0.9, 0.5, drops_when_learned=True) is None
    assert theorem.algorithm_pser_repeated(3, 0.8, discount(3), 0.7) is None
