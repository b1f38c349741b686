"""The compiled loop against a plain-Python Algorithm 1, step by step on the same draws."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import pser
from pser._kernel import TabularLoop
from pser.env.blind_cliffwalk import discount, exhaustive_memory, optimal_values
from pser.errors import PserError
from pser.learner.tabular.q_learning import (
    INITS,
    Agent,
    TabularSettings,
    compiled_loop,
    filled_index,
    generators,
    prioritization,
    run_agent,
)

PER = Agent(name="per")
PRIORITIZED = [
    PER,
    Agent(name="pser", rho=0.4, eta=0.7, decay="max"),
    Agent(name="pser", rho=0.8, eta=0.0, decay="max"),
    Agent(name="pser", rho=0.65, eta=0.7, decay="add"),
    Agent(name="pser", rho=0.4, eta=0.0, decay="add"),
    Agent(name="pser", rho=0.0, eta=0.7, decay="max"),
]


class PlainQ:
    """Q-learning on dictionaries: state → [value of the right action, value of the wrong one]."""

    def __init__(self, memory, step_size):
        self.memory, self.step_size = memory, step_size
        self.q = {s: [0.0, 0.0] for s in range(memory.states)}

    def td_error(self, i):
        s, wrong = int(self.memory.state[i]), int(not self.memory.right[i])
        target = 0.0
        if self.memory.rewarded[i]:
            target = 1.0
        elif not self.memory.terminated[i]:
            target = discount(self.memory.states) * max(self.q[s + 1])
        return target - self.q[s][wrong]

    def replay(self, i):
        delta = self.td_error(i)
        self.q[int(self.memory.state[i])][int(not self.memory.right[i])] += self.step_size * delta
        return delta

    def mse(self):
        truth = optimal_values(self.memory.states)
        errors = [(truth[s, a] - self.q[s][a]) ** 2 for s in self.q for a in (0, 1)]
        return sum(errors) / len(errors)

    def flat(self):
        return [value for s in self.q for value in self.q[s]]


class PlainPriorities:
    """Algorithm 1's priorities in a list, with the initialisations of the tabular section."""

    def __init__(self, memory, agent, init, settings):
        self.memory, self.agent, self.settings = memory, agent, settings
        self.largest = 1.0
        if init == "max":
            self.p = [1.0] * len(memory)
        elif init == "eps":
            self.p = [settings.eps] * len(memory)
        else:
            self.p = []
            for i in range(len(memory)):
                self.p.append(abs(float(memory.rewarded[i])) + settings.eps)
                self.largest = max(self.largest, self.p[i])
                self.decay(i, self.p[i])

    def sample(self, draw):
        masses = [p**self.settings.alpha for p in self.p]
        target, below = draw * sum(masses), 0.0
        for i, mass in enumerate(masses):
            below += mass
            if target < below:
                return i
        return len(masses) - 1

    def decay(self, i, fresh):
        if self.agent.name == "per":
            return
        for steps in range(1, self.settings.window + 1):
            if self.memory.first[i - steps + 1]:
                return
            arriving = fresh * self.agent.rho**steps
            if self.agent.decay == "max":
                self.p[i - steps] = max(arriving, self.p[i - steps])
            else:
                self.p[i - steps] = min(arriving + self.p[i - steps], self.largest)

    def update(self, i, delta):
        fresh = abs(delta) + self.settings.eps
        self.p[i] = max(fresh, (self.agent.eta or 0.0) * self.p[i])
        self.largest = max(self.largest, self.p[i])
        self.decay(i, fresh)


def loop_of(memory, replay, index=None, **changes):
    arguments = {"step_size": 0.25, "thresholds": [1e-3, 1e-5], "max_iterations": 10**6, "record_every": 100}
    return compiled_loop(memory, index, replay=replay, **{**arguments, **changes})


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("agent", PRIORITIZED, ids=lambda agent: agent.label)
def test_prioritized_agents_follow_a_plain_algorithm_1_step_by_step(agent, init):
    settings = TabularSettings()
    memory = exhaustive_memory(6, np.random.default_rng(5))
    index = filled_index(memory, prioritization(agent, settings), init)
    loop = loop_of(memory, "prioritized", index, thresholds=[0.0])  # never ends
    plain, priorities = PlainQ(memory, 0.25), PlainPriorities(memory, agent, init, settings)
    everyone = np.arange(len(memory))
    np.testing.assert_allclose(index.priority(everyone), priorities.p, rtol=1e-12)
    draws = np.random.default_rng(1).random(700)
    for t, draw in enumerate(draws):
        loop.advance(draws[t : t + 1])
        i = priorities.sample(draw)
        priorities.update(i, plain.replay(i))
        assert loop.values == plain.flat()
    np.testing.assert_allclose(index.priority(everyone), priorities.p, rtol=1e-12)
    index.check_invariants()
    assert max(plain.flat()) > 0.0  # the reward was found, so the comparison saw more than zeros


def test_uniform_agent_follows_a_plain_model_step_by_step():
    memory = exhaustive_memory(4, np.random.default_rng(2))
    loop, plain = loop_of(memory, "uniform"), PlainQ(memory, 0.25)
    draws = np.random.default_rng(3).random(600)
    for t, draw in enumerate(draws):
        loop.advance(draws[t : t + 1])
        plain.replay(int(draw * len(memory)))
        assert loop.values == plain.flat()
    assert max(plain.flat()) > 0.5


def test_uniform_agent_equals_the_uniform_memory_on_the_same_draws():
    memory = exhaustive_memory(4, np.random.default_rng(2))
    index = pser.PriorityIndex(len(memory), pser.Uniform())
    index.append(memory.first, stream=np.zeros(len(memory), np.int64))
    draws = np.random.default_rng(4).random(2000)
    fast, slow = loop_of(memory, "uniform"), loop_of(memory, "prioritized", index)
    fast.advance(draws)
    slow.advance(draws)
    assert fast.values == slow.values
    assert fast.crossings == slow.crossings


def test_backward_agent_replays_whole_episodes_from_their_end():
    memory = exhaustive_memory(4, np.random.default_rng(2))
    starts = [*np.flatnonzero(memory.first).tolist(), len(memory)]
    loop, plain = loop_of(memory, "backward", max_iterations=400), PlainQ(memory, 0.25)
    draws = np.random.default_rng(6).random(400)
    order = []
    for draw in draws:
        episode = int(draw * (len(starts) - 1))
        order += range(starts[episode + 1] - 1, starts[episode] - 1, -1)
    loop.advance(draws)
    for i in order[:400]:
        plain.replay(i)
    assert loop.iterations == 400
    assert loop.values == plain.flat()
    assert max(plain.flat()) > 0.5


def test_draws_in_any_blocks_give_the_same_run():
    memory = exhaustive_memory(5, np.random.default_rng(0))
    draws = np.random.default_rng(1).random(3000)
    for replay in ("uniform", "backward", "prioritized"):
        runs = []
        for block in (3000, 7):
            rules = prioritization(PRIORITIZED[1], TabularSettings())
            index = filled_index(memory, rules, "eps") if replay == "prioritized" else None
            loop = loop_of(memory, replay, index)
            for start in range(0, 3000, block):
                loop.advance(draws[start : start + block])
            runs.append((loop.values, loop.crossings, loop.curve, loop.iterations))
        assert runs[0] == runs[1]


def test_crossings_are_the_first_iterations_below_the_thresholds_and_curves_lie_on_the_grid():
    memory = exhaustive_memory(5, np.random.default_rng(8))
    draws = np.random.default_rng(9).random(20_000)
    loop, plain = loop_of(memory, "uniform"), PlainQ(memory, 0.25)
    loop.advance(draws)
    errors = [plain.mse()]
    for draw in draws[: loop.iterations]:
        plain.replay(int(draw * len(memory)))
        errors.append(plain.mse())
    assert loop.crossings == [next(t for t, e in enumerate(errors) if e < limit) for limit in (1e-3, 1e-5)]
    assert loop.iterations == loop.crossings[-1]
    assert loop.curve == pytest.approx(errors[::100], rel=1e-12)
    rewarded = np.flatnonzero(memory.rewarded)[0]
    assert loop.first_reward == 1 + next(t for t, u in enumerate(draws) if int(u * len(memory)) == rewarded)


@pytest.mark.parametrize("states", [2, 7])
def test_curves_start_at_the_error_of_nothing_learned(states):
    for name in ("uniform", "oracle", "sweeping", "backward", "per"):
        run = run_agent(Agent(name=name), "max", states, 0, TabularSettings())
        assert run.curve[0] == pytest.approx(np.mean(optimal_values(states) ** 2), rel=1e-12)


@pytest.mark.parametrize("agent", [*PRIORITIZED, Agent(name="uniform"), Agent(name="backward")], ids=str)
def test_the_error_never_grows(agent):
    curve = run_agent(agent, "eps", 6, 1, TabularSettings(record_every=1)).curve
    assert all(after <= before for before, after in pairwise(curve))


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    agent = PRIORITIZED[1]
    one, same, other = (run_agent(agent, "eps", 7, seed, TabularSettings()) for seed in (0, 0, 1))
    assert one.crossings == same.crossings
    assert np.array_equal(one.curve, same.curve)
    assert one.crossings != other.crossings


def test_seeds_are_paired_across_agents_and_initialisations():
    """From equal priorities PER, PSER and uniform draw the same transitions until the reward is replayed."""
    settings = TabularSettings()
    uniform = run_agent(Agent(name="uniform"), "eps", 8, 3, settings)
    for agent in PRIORITIZED:
        if agent.decay != "add":  # ADD lets even ε add up
            assert run_agent(agent, "eps", 8, 3, settings).first_reward == uniform.first_reward
    order, draws = generators(8, 3)
    assert order.random() != draws.random()


def test_the_mass_of_the_memory_is_noted_at_each_crossing():
    memory = exhaustive_memory(5, np.random.default_rng(8))
    index = filled_index(memory, prioritization(PRIORITIZED[1], TabularSettings()), "max")
    loop = loop_of(memory, "prioritized", index)
    loop.advance(np.random.default_rng(1).random(50_000))
    assert loop.done
    assert loop.masses[-1] == index.stats()["total_mass"]
    assert loop.masses[0] != loop.masses[-1]


def test_a_run_that_does_not_converge_is_given_up_and_says_so():
    run = run_agent(Agent(name="uniform"), "max", 8, 0, TabularSettings(max_replays=1))
    assert run.crossings == (None, None)
    assert run.iterations == 2**9 - 2


def test_max_init_is_not_decayed_and_current_td_is():
    memory = exhaustive_memory(3, np.random.default_rng(0))
    rules = pser.PSER(rho=0.5, eta=0.0, eps=0.01)
    everyone = np.arange(len(memory))
    goal = int(np.flatnonzero(memory.rewarded)[0])
    assert filled_index(memory, rules, "max").priority(everyone).tolist() == [1.0] * len(memory)
    added = replace(rules, decay="add")
    assert filled_index(memory, added, "eps").priority(everyone).tolist() == [0.01] * len(memory)
    held = filled_index(memory, rules, "current_td").priority(everyone)
    assert held[goal - 2 : goal + 1].tolist() == pytest.approx([0.2525, 0.505, 1.01])
    assert np.delete(held, [goal - 2, goal - 1, goal]).tolist() == pytest.approx([0.01] * (len(memory) - 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "pser", "rho": 1.0, "eta": 0.0, "decay": "max"}, "rho"),
        ({"name": "pser", "rho": 0.4, "eta": 1.0, "decay": "max"}, "eta"),
        ({"name": "pser", "rho": 0.4}, "all three"),
        ({"name": "per", "rho": 0.4}, "all three"),
    ],
)
def test_impossible_agents_are_refused(arguments, message):
    with pytest.raises(PserError, match=message):
        Agent(**arguments)


@pytest.mark.parametrize("settings", [{"thresholds": ()}, {"thresholds": (1e-5, 1e-3)}, {"max_replays": 0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(PserError):
        TabularSettings(**settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry": np.array([0, 9])}, "outside the table"),
        ({"next_state": np.array([0, 3])}, "outside the table"),
        ({"reward": np.zeros(1)}, "one length"),
        ({"episode_starts": np.array([1])}, "starts at transition 0"),
        ({"episode_starts": np.array([0, 0])}, "rise"),
        ({"episode_starts": np.array([0, 2])}, "rise"),
        ({"actions": 3}, "row of actions"),
        ({"replay": "prioritized"}, "needs an index"),
        ({"replay": "best"}, "uniform, prioritized or backward"),
        ({"report": "none"}, "found, settled"),
    ],
)
def test_the_kernel_refuses_a_memory_that_contradicts_itself(changes, message):
    arguments = {
        "entry": np.array([0, 1]),
        "next_state": np.array([0, 1]),
        "reward": np.zeros(2),
        "discount": np.zeros(2),
        "episode_starts": np.array([0, 1]),
        "truth": np.zeros(4),
        "actions": 2,
        "step_size": 0.25,
        "index": None,
        "replay": "uniform",
        "report": "found",
        "thresholds": [1e-3],
        "record_every": 0,
        "max_iterations": 10,
    }
    TabularLoop(**arguments)
    with pytest.raises(PserError, match=message):
        TabularLoop(**{**arguments, **changes})
