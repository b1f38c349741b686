import numpy as np
import pytest

from pser.env.blind_cliffwalk import discount, exhaustive_memory, optimal_values
from pser.learner.tabular.greedy import PairModel, initial_sweeping_priorities, oracle_choice
from pser.learner.tabular.q_learning import Agent, TabularSettings, run_agent


def best_transition(memory, values, truth, step_size):
    """Try every transition of the memory in turn; the first that leaves the smallest error wins."""
    best, best_error = None, np.inf
    for i in range(len(memory)):
        s, a = int(memory.state[i]), int(not memory.right[i])
        target = 0.0
        if memory.rewarded[i]:
            target = 1.0
        elif not memory.terminated[i]:
            target = discount(memory.states) * values[s + 1].max()
        after = values.copy()
        after[s, a] += step_size * (target - values[s, a])
        error = ((truth - after) ** 2).sum()
        if error < best_error - 1e-15:
            best, best_error = (s, a, after), error
    return best


@pytest.mark.parametrize("states", [1, 2, 3, 5])
def test_oracle_is_the_best_of_all_transitions_in_hindsight(states):
    memory = exhaustive_memory(states, np.random.default_rng(0))
    model, truth = PairModel(memory), optimal_values(states)
    values = np.zeros((states, 2))
    for _ in range(80):
        s, a, after = best_transition(memory, values, truth, 0.25)
        pair = oracle_choice(values.ravel(), truth.ravel(), model.td_errors(values.ravel()), 0.25)
        mine = values.copy()
        mine.ravel()[pair] += 0.25 * model.td_errors(values.ravel())[pair]
        # Ties apart, it is the same pair; the error it leaves is the smallest in any case.
        assert ((truth - mine) ** 2).sum() == pytest.approx(((truth - after) ** 2).sum(), abs=1e-14)
        assert pair % 2 == 0
        assert (s, a) == (pair // 2, pair % 2) or np.isclose(((after - mine) ** 2).sum(), 0, atol=1e-3)
        values = mine


def test_oracle_is_not_slower_than_any_agent_that_samples():
    settings = TabularSettings()
    oracle = run_agent(Agent(name="oracle"), "max", 8, 0, settings)
    for agent in (Agent(name="uniform"), Agent(name="per"), Agent(name="backward")):
        assert run_agent(agent, "current_td", 8, 0, settings).crossings[0] > oracle.crossings[0]


def test_pair_model_knows_what_leads_where():
    model = PairModel(exhaustive_memory(3, np.random.default_rng(1)))
    assert model.reward.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert [model.predecessors(2 * s).tolist() for s in range(3)] == [[], [0], [2]]


def test_sweeping_follows_the_reward_backward_from_the_goal():
    """With learning rate 1 and TD errors as first priorities, each replay settles one pair: n iterations."""
    settings = TabularSettings(step_size=1.0, thresholds=(1e-12,))
    for states in (1, 2, 5, 9):
        run = run_agent(Agent(name="sweeping"), "current_td", states, 0, settings)
        assert run.crossings == (states,)
        assert run.first_reward == 1


def test_sweeping_from_equal_priorities_must_first_meet_the_goal():
    settings = TabularSettings(step_size=1.0, thresholds=(1e-12,))
    runs = [run_agent(Agent(name="sweeping"), "eps", 6, seed, settings) for seed in range(40)]
    waits = [run.first_reward for run in runs]
    assert len(set(waits)) > 5
    assert all(run.crossings == (wait + 5,) for run, wait in zip(runs, waits, strict=True))


def test_initial_sweeping_priorities_are_those_of_the_initialisation():
    model = PairModel(exhaustive_memory(2, np.random.default_rng(1)))
    assert initial_sweeping_priorities(model, "max", 0.1).tolist() == [1.0] * 4
    assert initial_sweeping_priorities(model, "eps", 0.1).tolist() == [0.1] * 4
    assert initial_sweeping_priorities(model, "current_td", 0.1).tolist() == [0.1, 0.1, 1.1, 0.1]
