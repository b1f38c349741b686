"""`pser presets`: the settings that training starts from."""

import re

import pytest

from pser.cli import main
from pser.cli.train_flags import as_written
from pser.learner.presets import PRESETS, preset_settings
from pser.learner.settings_json import to_json


def test_all_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if re.match(r"  \w", line)] == list(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_shown_with_every_value(name, capsys):
    assert main(["presets", name, "--game", "gym:CartPole-v1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for group in to_json(preset_settings(name, "gym:CartPole-v1")).values():
        for setting, value in group.items():
            if not isinstance(value, dict):
                shown = as_written(tuple(value) if isinstance(value, list) else value)
                assert f"{setting.replace('_', '-')} {shown}" in text


@pytest.mark.parametrize("words", [[], ["paper"]])
@pytest.mark.parametrize("width", [80, 60])
def test_presets_fit_the_terminal(words, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["presets", *words]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_an_unknown_preset_names_the_known_ones(capsys):
    assert main(["presets", "quick"]) == 2
    assert "choose one of paper" in capsys.readouterr().err
