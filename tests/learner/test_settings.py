"""Settings refuse what cannot work, in one line, and survive the way through JSON."""

import json

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
from pser.learner.settings import GROUP_OF_FIELD, GROUPS, GameSettings, ReplaySettings
from pser.learner.settings_json import from_json, to_json


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
    assert (replay.alpha, replay.beta, replay.beta_end) == (0.5, 0.5, 0.5)
    assert replay.prioritization() == pser.PSER(alpha=0.5, eps=1e-4, eta=0.7, rho=0.4, window=5, decay="max")
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


def test_every_strategy_becomes_the_memorys_form():
    assert ReplaySettings(replay="uniform").prioritization() == pser.Uniform()
    assert ReplaySettings(replay="per", alpha=0.6, variant="rank").prioritization() == pser.PER(
        alpha=0.6, variant="rank"
    )
    adaptive = ReplaySettings(window="adaptive", window_floor=0.5, window_limit=7).prioritization()
    assert adaptive.window == pser.AdaptiveWindow(floor=0.5, limit=7)
    assert ReplaySettings(window="derived").prioritization().window is None


def test_an_unknown_preset_is_one_line():
    with pytest.raises(PserError, match="no preset 'slow'"):
        preset_settings("slow", "atari:Pong")


def test_override_leaves_the_rest_alone():
    before = classic("gym:CartPole-v1")
    after = before.override({"seed": 3, "alpha": 0.7})
    assert (after.run.seed, after.replay.alpha) == (3, 0.7)
    assert after.override({"seed": before.run.seed, "alpha": before.replay.alpha}) == before


def test_fast_preset_is_for_atari():
    assert fast("atari:Pong").game == GameSettings(
        env="atari:Pong", num_envs=8, noop_max=30, max_episode_steps=27_000, life_loss=True, clip_rewards=True
    )
