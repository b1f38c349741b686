"""All combinations of Rainbow's parts: their names, their gradients, and that each runs and resumes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.learner.test_loop import SMALL, CountingGame
from tests.learner.test_noisy import batch

import pser
from pser.errors import PserError
from pser.learner import dueling
from pser.learner.dqn import DQN
from pser.learner.events import CheckpointDue, IntervalLogged
from pser.learner.family import AGENTS, PARTS, agent_label, parts_of, run_label, switches
from pser.learner.loop import Trainer
from pser.learner.presets import RAINBOW_PARTS, classic, minatar, rainbow, rainbow_minatar

torch.set_num_threads(1)
CPU = torch.device("cpu")
COMBINATIONS = [frozenset(c) for n in range(6) for c in itertools.combinations(PARTS, n)]


def changes_of(parts):
    return {
        "double_q": "double" in parts,
        "dueling": "dueling" in parts,
        "n_step": 3 if "n-step" in parts else 1,
        "loss": "c51" if "c51" in parts else "huber",
        "noisy": "noisy" in parts,
        "atoms": 7,
    }


def name_of(parts):
    return "+".join(part for part in PARTS if part in parts) or "dqn"


@pytest.mark.parametrize("parts", COMBINATIONS, ids=name_of)
def test_every_combination_runs_and_resumes_bit_for_bit(parts, tmp_path):
    changes = {**SMALL, **changes_of(parts), "budget_frames": 200, "checkpoint_period_frames": 4}
    settings = classic("gym:CartPole-v1").override({**changes, "num_envs": 2, "replay": "pser"})
    assert parts_of(settings) == parts
    straight, stopped, resumed = (Trainer(settings, CountingGame(2), CPU) for _ in range(3))
    before = straight.agent.get_weights()

    def rows_of(run, events=None):
        rows = []
        for event in events or run.train():
            if isinstance(event, IntervalLogged):
                rows.append({key: value for key, value in event.row.items() if key != "frames_per_second"})
            if isinstance(event, CheckpointDue) and run is stopped and event.frames >= 120:
                break
        return rows

    expected, rows = rows_of(straight), rows_of(stopped)
    stopped.memory.save(tmp_path / "memory")
    resumed.set_state(stopped.get_state(), pser.ReplayMemory.load(tmp_path / "memory"))
    assert rows + rows_of(resumed) == expected
    assert np.isfinite(expected[-1]["loss"])
    assert not np.array_equal(straight.agent.get_weights(), before)
    assert np.array_equal(straight.agent.get_weights(), resumed.agent.get_weights())
    first, second = straight.agent.get_state(), resumed.agent.get_state()
    assert np.array_equal(first["target"], second["target"])
    assert np.array_equal(first.get("noise"), second.get("noise"))


@pytest.mark.parametrize("parts", [c for c in COMBINATIONS if "n-step" not in c], ids=name_of)
def test_the_gradient_of_the_whole_loss_is_its_slope(parts):
    """Central differences in float64 of mean(w·loss), at places drawn at random, against what an update computes."""
    changes = {**changes_of(parts), "hidden": (6, 5), "max_grad_norm": 0.0}
    agent = DQN(classic("gym:CartPole-v1").override(changes), (4,), 2, seed=0, device=CPU)
    with torch.no_grad():
        agent.target_flat.values.mul_(1.1)
    agent.optimizer.step = lambda loose: None  # keep the gradient, leave the weights
    data = batch()
    agent.learn(data)
    gradients = agent.online_flat.gradients.double()
    network, target = agent.online.double(), agent.target.double()
    network.prepare = target.prepare = torch.nn.Identity()  # the usual one makes float32 of everything
    for noise in agent.noise:  # as it was drawn, for every pass below
        noise.on = True
        for module in (*network.modules(), *target.modules()):
            if hasattr(module, "input_noise"):
                module.input_noise, module.output_noise = (
                    module.input_noise.double(),
                    module.output_noise.double(),
                )
    head, per_action = agent.head, agent.head.per_action
    if "c51" in parts:
        head.support = head.support.double()

    def values_of(net, observation):
        outputs = net(torch.from_numpy(observation).double())
        return dueling.combine(outputs, per_action) if "dueling" in parts else outputs

    def tensor(array):
        return torch.from_numpy(array).double()

    with torch.no_grad():
        action, weights = torch.from_numpy(data.action), tensor(data.weights)
        choice = (
            head.q_values(values_of(network, data.next_observation)).argmax(1) if "double" in parts else None
        )
        next_values = values_of(target, data.next_observation)
        targets = head.targets(next_values, choice, tensor(data.reward), tensor(data.discount))

        def loss():
            taken = head.taken(values_of(network, data.observation), action)
            return (weights * head.losses(taken, targets)).mean().item()

        checked = 0
        rng, start = np.random.default_rng(0), 0
        for parameter in network.parameters():
            flat = parameter.data.view(-1)
            for place in rng.choice(len(flat), size=min(4, len(flat)), replace=False):
                old, step = flat[place].item(), 1e-5
                flat[place] = old + step
                above = loss()
                flat[place] = old - step
                below = loss()
                flat[place] = old
                slope = (above - below) / (2 * step)
                assert gradients[start + place].item() == pytest.approx(slope, rel=2e-3, abs=2e-6)
                checked += 1
            start += -(-len(flat) // 16) * 16  # parameters are aligned
        assert checked >= 20


@pytest.mark.parametrize("name", AGENTS)
def test_a_named_agent_has_its_parts_whatever_the_preset_has(name):
    for base in (minatar("minatar:breakout"), rainbow("atari:Pong"), classic("gym:CartPole-v1")):
        assert parts_of(base.override(switches(name, base))) == AGENTS[name]


def test_an_agent_keeps_the_presets_number_of_steps():
    base = rainbow("atari:Pong").override({"n_step": 20})
    assert switches("n-step", base)["n_step"] == 20
    assert switches("n-step", minatar("minatar:breakout"))["n_step"] == 3


def test_an_unknown_agent_is_one_line():
    with pytest.raises(PserError, match="no agent 'sarsa': choose one of dqn"):
        switches("sarsa", minatar("minatar:breakout"))


@pytest.mark.parametrize(
    ("changes", "agent", "label"),
    [
        ({}, "DQN", "PSER_MaxPrio_MAX"),
        ({"loss": "c51", "replay": "per"}, "DQN+C51", "DQN+C51_PER_MaxPrio"),
        ({"double_q": True, "n_step": 3}, "DQN+Double+NStep", "DQN+Double+NStep_PSER_MaxPrio_MAX"),
        (RAINBOW_PARTS, "Rainbow", "Rainbow_PSER_MaxPrio_MAX"),
        ({**RAINBOW_PARTS, "noisy": False}, "Rainbow-NoNoisy", "Rainbow-NoNoisy_PSER_MaxPrio_MAX"),
        ({**RAINBOW_PARTS, "replay": "uniform"}, "Rainbow", "Rainbow_Uniform"),
    ],
)
def test_labels_show_the_agent_and_the_replay(changes, agent, label):
    run = minatar("minatar:breakout").override(changes)
    assert (agent_label(run), run_label(run)) == (agent, label)


def test_the_agent_of_a_familys_own_preset_goes_without_saying():
    usual = classic("gym:CartPole-v1")
    assert (agent_label(usual), run_label(usual)) == ("DQN+Double+NStep", "PSER_MaxPrio_MAX")
    plain = usual.override(switches("dqn", usual))
    assert run_label(plain) == "DQN_PSER_MaxPrio_MAX"


def test_every_combination_has_a_label_of_its_own():
    base = minatar("minatar:breakout")
    labels = {run_label(base.override(changes_of(parts))) for parts in COMBINATIONS}
    assert len(labels) == 32


def test_without_distributions_a_divergence_becomes_the_td_error():
    base = rainbow("atari:Pong")
    assert base.replay.priority_signal == "kl"
    assert base.override(switches("rainbow-no-c51", base)).replay.priority_signal == "td"
    assert base.override(switches("rainbow-no-noisy", base)).replay.priority_signal == "kl"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"v_min": 10.0}, "v_min must be below v_max"),
        ({"atoms": 1}, "atoms must be at least 2"),
        ({"noisy_sigma": 0.0}, "noisy_sigma must be positive"),
        ({"v_max": float("inf")}, "v_max must be finite"),
        ({"epsilon_spread": -1.0}, "epsilon_spread"),
    ],
)
def test_wrong_values_are_one_line(changes, words):
    with pytest.raises(PserError, match=words) as caught:
        rainbow_minatar("minatar:breakout").override(changes)
    assert "\n" not in str(caught.value)


def test_noise_explores_instead_of_random_actions_once_learning_starts():
    run = Trainer(
        classic("gym:CartPole-v1").override({**SMALL, "noisy": True, "num_envs": 1}), CountingGame(1), CPU
    )
    assert run.epsilon() == 1.0  # random play before the first update, as without noise
    run.counters.steps = run.settings.agent.warmup_steps
    assert run.epsilon() == 0.0


def test_environments_explore_unequally_where_asked():
    settings = classic("gym:CartPole-v1").override(
        {**SMALL, "num_envs": 4, "epsilon_start": 0.4, "epsilon_end": 0.4, "epsilon_spread": 7.0}
    )
    run = Trainer(settings, CountingGame(4), CPU)
    np.testing.assert_allclose(
        run.epsilons(), [0.4 ** (1 + 7 * i / 3) for i in range(4)]
    )  # Horgan et al. 2018
    alone = Trainer(replace(settings, game=replace(settings.game, num_envs=1)), CountingGame(1), CPU)
    np.testing.assert_allclose(alone.epsilons(), [0.4])
    list(run.train())
