"""Settings refuse what cannot work, in one line, and survive the way through JSON."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

import pser
from pser.errors import PserError
from pser.learner.presets import (
    PRESETS,
    authors,
    classic,
    default_preset,
    fast,
    minatar,
    paper,
    preset_settings,
)
from pser.learner.settings import GROUP_OF_FIELD, GROUPS, STRATEGY_FIELDS, GameSettings, ReplaySettings
from pser.learner.settings_json import from_json, to_json
from pser.learner.strategies import RENAMED, STRATEGIES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"env": "Pong"}, "FAMILY:NAME"),
        ({"env": "nes:Mario"}, "no family of games 'nes'"),
        ({"window": -1}, "window"),
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"rho": 1.5}, "rho"),
        ({"eta": -0.5}, "eta"),
        ({"capacity": 31}, "capacity must hold at least one batch"),
        ({"capacity": 0}, "capacity"),
        ({"beta_end": 1.1}, "beta_end"),
        ({"gamma": 1.1}, "gamma"),
        ({"num_envs": 0}, "num_envs"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"rms_decay": 1.0}, "rms_decay"),
        ({"optimizer_eps": 0.0}, "optimizer_eps"),
        ({"epsilon_end": 2.0}, "epsilon_end"),
        ({"eval_epsilon": -1.0}, "eval_epsilon"),
        ({"budget_frames": 0}, "budget_frames"),
        ({"hidden": ()}, "hidden"),
        ({"warmup_steps": 0}, "warmup_steps must complete a transition"),
        ({"window": "adaptive", "window_floor": 0.0}, "window_floor"),
        ({"replay": "greedy"}, "no such replay strategy"),
        ({"learner": "sarsa"}, "learner must be one of"),
        ({"loss": "mse"}, "loss must be one of"),
        ({"network": "transformer"}, "package.module:Class"),
        ({"network": "module:"}, "package.module:Class"),
        ({"threads": 100_000}, "threads must be at most"),
        ({"priority_signal": "kl"}, "needs a loss of distributions, which huber is not"),
    ],
)
def test_a_bad_setting_is_one_line_with_its_name(changes, words):
    with pytest.raises(PserError, match=words) as caught:
        paper("atari:Pong").override(changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_json(preset):
    settings = preset_settings(preset, "gym:CartPole-v1").override({"hidden": (3, 2), "window": "derived"})
    assert from_json(json.loads(json.dumps(to_json(settings)))) == settings


@pytest.mark.parametrize(
    ("group", "entry"),
    [
        ("replay", {"alpha": "much"}),
        ("replay", {"window": 2.5}),
        ("replay", {"decay": "min"}),
        ("replay", {"colour": 1}),
        ("run", {"seed": True}),
        ("colour", {}),
    ],
)
def test_an_edited_manifest_is_refused(group, entry):
    plain = to_json(paper("atari:Pong"))
    plain[group] = plain.get(group, {}) | entry
    with pytest.raises(PserError):
        from_json(plain)


def test_a_manifest_without_its_game_is_refused():
    plain = to_json(paper("atari:Pong"))
    del plain["game"]["env"]
    with pytest.raises(PserError, match="env"):
        from_json(plain)


def test_field_names_are_unique_over_all_groups():
    assert len(GROUP_OF_FIELD) == sum(len(cls.__dataclass_fields__) for cls in GROUPS.values())


def test_paper_preset_is_the_papers_table():
    settings = paper("atari:Pong")
    assert (settings.agent.batch_size, settings.agent.warmup_steps) == (32, 50_000)
    assert (settings.agent.target_period_steps, settings.agent.update_period_steps) == (10_000, 4)
    optimizer = settings.optimizer
    assert (optimizer.learning_rate, optimizer.rms_decay, optimizer.optimizer_eps) == (2.5e-4, 0.95, 1e-5)
    assert (optimizer.centered, optimizer.momentum) == (True, 0.0)
    replay = settings.replay
    assert (replay.beta, replay.beta_end) == (0.5, 0.5)
    assert replay.prioritization == pser.PSER(alpha=0.5, eps=1e-4, eta=0.7, rho=0.4, window=5, decay="max")
    assert (settings.exploration.epsilon_end, settings.exploration.epsilon_decay_steps) == (0.01, 1_000_000)
    evaluation = settings.evaluation
    assert (evaluation.eval_period_frames, evaluation.eval_frames) == (1_000_000, 500_000)
    assert (evaluation.eval_epsilon, evaluation.eval_noop_max) == (0.001, 30)
    assert (settings.game.max_episode_steps, settings.game.clip_rewards) == (27_000, True)
    assert settings.game.life_loss


def test_authors_preset_differs_from_the_paper_only_where_their_code_does():
    ours, theirs = to_json(paper("atari:Pong")), to_json(authors("atari:Pong"))
    different = {name for group in ours for name in ours[group] if ours[group][name] != theirs[group][name]}
    assert different == {
        "alpha",
        "priority_eps",
        "priority_signal",
        "decay_from",
        "decay_on_insert",
        "eval_noop_max",
    }


@pytest.mark.parametrize(
    ("env", "preset"),
    [("atari:Pong", "paper"), ("minatar:breakout", "minatar"), ("gym:CartPole-v1", "classic")],
)
def test_each_family_has_its_preset(env, preset):
    assert default_preset(env) == preset


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "PSER_MaxPrio_MAX"),
        ({"initial": "td", "decay": "add"}, "PSER_CurrentTD_ADD"),
        ({"replay": "per"}, "PER_MaxPrio"),
        ({"replay": "per", "initial": "td"}, "PER_CurrentTD"),
        ({"replay": "uniform", "initial": "td"}, "Uniform"),
    ],
)
def test_labels_read_as_in_the_papers_ablation(changes, label):
    assert minatar("minatar:breakout").override(changes).replay.label == label


def test_the_settings_hold_the_memorys_own_prioritization():
    def rule(**changes):
        return minatar("minatar:breakout").override(changes).replay.prioritization

    assert rule() == pser.PSER(alpha=0.6)
    assert rule(replay="uniform", stratified=False) == pser.Uniform(stratified=False)
    assert rule(replay="per", variant="rank") == pser.PER(alpha=0.6, variant="rank")  # what both have stays
    assert rule(priority_eps=0.5, is_weights="memory") == pser.PSER(alpha=0.6, eps=0.5, weights="memory")
    adaptive = rule(window="adaptive", window_floor=0.5, window_limit=7)
    assert adaptive.window == pser.AdaptiveWindow(floor=0.5, limit=7)
    assert rule(window="adaptive").window == pser.AdaptiveWindow(floor=0.01, limit=100)
    assert rule(window="derived").window is None


def test_a_setting_of_another_strategy_changes_nothing():
    base = minatar("minatar:breakout").override({"replay": "per"})
    assert base.override({"eta": 0.1, "window": 3}) == base  # a grid may hold several strategies


def test_every_field_of_every_strategy_is_a_setting():
    for strategy in STRATEGIES.values():
        for item in fields(strategy.settings):
            assert RENAMED.get(item.name, item.name) in STRATEGY_FIELDS


def test_an_object_that_is_no_strategy_is_one_line():
    with pytest.raises(PserError, match="no replay strategy"):
        ReplaySettings(prioritization="per").label  # noqa: B018


@pytest.mark.parametrize("other", ["huber", "sqrt_huber"])
def test_signals_have_one_name_inside(other):
    expected = {"huber": "loss", "sqrt_huber": "sqrt_loss"}[other]
    assert ReplaySettings(priority_signal=other).priority_signal == expected


def test_manifests_of_earlier_versions_are_read():
    """They held the settings of all strategies side by side."""
    found = sorted(Path(__file__).parents[2].glob("results/*/**/manifest.json"))
    assert found
    for path in found:
        plain = json.loads(path.read_text())["settings"]
        settings = from_json(plain)
        assert settings.replay.replay == plain["replay"]["replay"]
        if settings.replay.replay != "uniform":
            assert settings.replay.prioritization.alpha == plain["replay"]["alpha"]


def test_an_unknown_preset_is_one_line():
    with pytest.raises(PserError, match="no preset 'slow'"):
        preset_settings("slow", "atari:Pong")


@pytest.mark.parametrize(
    ("name", "near"), [("replya", "replay"), ("learning_rat", "learning_rate"), ("Eta", "eta")]
)
def test_override_names_the_setting_that_there_is_not_and_the_nearest(name, near):
    with pytest.raises(PserError, match=f"there is no setting '{name}': did you mean {near}"):
        minatar("minatar:breakout").override({name: 1})


def test_override_leaves_the_rest_alone():
    before = classic("gym:CartPole-v1")
    after = before.override({"seed": 3, "alpha": 0.7})
    assert (after.run.seed, after.replay.prioritization) == (3, pser.PSER(alpha=0.7))
    assert after.override({"seed": before.run.seed, "alpha": 0.5}) == before


def test_fast_preset_is_for_atari():
    assert fast("atari:Pong").game == GameSettings(
        env="atari:Pong", num_envs=8, noop_max=30, max_episode_steps=27_000, life_loss=True, clip_rewards=True
    )
