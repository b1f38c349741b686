"""Kin of PSER on small chains: what is replayed, towards what, and that all of them learn."""

import numpy as np
import pytest

from pser.env.blind_cliffwalk import exhaustive_memory, optimal_values
from pser.learner.tabular import kin
from pser.learner.tabular.q_learning import KIN, Agent, TabularSettings, run_agent


def chain_of(states=5, seed=0):
    return kin.Chain(exhaustive_memory(states, np.random.default_rng(seed)))


def test_targets_are_those_of_the_optimal_values():
    chain, truth = chain_of(), optimal_values(5).ravel()
    found = [chain.target(at, truth) for at in range(len(chain.pair))]
    assert found == pytest.approx(truth[chain.pair])


def test_going_back_stays_in_the_episode():
    chain = chain_of()
    for at in range(len(chain.pair)):
        back = chain.back(at, 3)
        assert back == [at - step for step in range(len(back))]
        assert not any(chain.first[step] for step in back[:-1])
        assert len(back) == min(3, chain.state[at] + 1)


def test_a_virtual_sequence_is_a_path_of_the_chain_back_to_its_start():
    chain, draws = chain_of(8), np.random.default_rng(0)
    (end,) = np.flatnonzero(chain.reward)
    sequence = kin.virtual_sequence(chain, int(end), 4, draws)
    assert [int(chain.state[at]) for at in sequence] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert sequence[:4] == chain.back(int(end), 4)
    joined = {kin.virtual_sequence(chain, int(end), 4, draws)[4] for _ in range(50)}
    assert len(joined) > 1  # of different trajectories that lead there


def test_a_reward_is_carried_back_by_one_step_a_replay():
    chain = chain_of()
    lessons, _ = kin.backprop(chain, np.random.default_rng(0))
    (end,) = np.flatnonzero(chain.reward)
    path = chain.back(int(end), 5)
    seen = [at for at, _ in (next(lessons) for _ in range(2000)) if at in path]
    assert set(seen) == set(path)  # the high priority has walked over all of it


def test_the_backward_update_learns_a_whole_episode_towards_fixed_targets():
    chain, values = chain_of(3), np.zeros(6)
    draws = np.random.default_rng(1)
    lessons, _ = kin.ebu(chain, draws, values)
    (end,) = np.flatnonzero(chain.reward)
    learned = [next(lessons) for _ in range(400)]
    towards = {at: target for at, target in learned if at in chain.back(int(end), 3)}
    # Q = 0 throughout: the reward comes back halved at each step, and discounted.
    gamma = 1 - 1 / 3
    assert [towards[at] for at in chain.back(int(end), 3)] == pytest.approx(
        [1.0, gamma / 2, (gamma / 2) ** 2]
    )


@pytest.mark.parametrize("name", KIN)
def test_every_kin_learns_the_values(name):
    run = run_agent(Agent(name=name), "max", 4, 0, TabularSettings())
    assert None not in run.crossings
    assert run.first_reward <= run.crossings[0]


@pytest.mark.parametrize("name", KIN)
def test_a_run_depends_on_its_seed_alone(name):
    one, same = (run_agent(Agent(name=name), "max", 5, 3, TabularSettings()) for _ in range(2))
    assert one.crossings == same.crossings
    assert (one.curve == same.curve).all()
