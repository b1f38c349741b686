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


def test_reliability_falls_with_the_surprise_that_lies_ahead():
    """After one replay of the reward, drawn frequencies are |δ|^α·R^ω, computed step by step."""
    chain, settings = chain_of(4), TabularSettings()
    lessons, told = kin.reaper(chain, np.random.default_rng(0), settings)
    size = [1.0] * len(chain.pair)
    rng = np.random.default_rng(1)
    for at in rng.integers(len(size), size=20):
        td = float(rng.normal())
        told(int(at), td)
        size[at] = abs(td) + settings.eps
    weight = []
    for start, end in zip(chain.starts, chain.ends, strict=True):
        for at in range(start, end + 1):
            later = sum(size[step] for step in range(at + 1, end + 1))
            reliable = 1 - later / sum(size[step] for step in range(start, end + 1))
            weight.append(size[at] ** settings.alpha * reliable**0.2)
    draws = 40_000
    counts = np.bincount([next(lessons)[0] for _ in range(draws)], minlength=len(size))
    expected = draws * np.array(weight) / sum(weight)
    assert ((counts - expected) ** 2 / expected).sum() < len(size) + 6 * (2 * len(size)) ** 0.5


def test_introspective_replay_runs_backward_from_the_largest_surprise():
    chain = chain_of(4)
    lessons, told = kin.ier(chain, 3)
    count = len(chain.pair)
    seen = []
    for _ in range(count):  # first everything once, newest first
        at, target = next(lessons)
        assert target is None
        seen.append(at)
        told(at, 0.1)
    assert seen == list(range(count - 1, -1, -1))
    told(7, -5.0)
    assert [next(lessons)[0] for _ in range(3)] == [7, 6, 5]
    told(7, 0.0)
    told(1, 2.0)
    assert [next(lessons)[0] for _ in range(2)] == [1, 0]


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
