"""What a study declares, and the order of its runs."""

import pytest

from pser.errors import PserError
from pser.learner.family import PARTS, parts_of
from pser.learner.presets import preset_settings
from pser.studies.catalogue import NAMES, find_study
from pser.studies.declaration import declaration, played
from pser.studies.figures import looks
from pser.studies.report import shown_games
from pser.studies.results import results_of
from pser.studies.study import Arm, Contrast, Game, Planned

from .synthetic import records, small_study


def test_the_first_seed_of_everything_comes_before_any_second():
    study = small_study(seeds=3)
    runs = study.runs({})
    assert [run.seed for run in runs] == [0] * 4 + [1] * 4 + [2] * 4
    assert {(run.game.env, run.arm.name) for run in runs[:4]} == {
        (game.env, arm.name) for game in study.games for arm in study.arms
    }


def test_a_study_may_use_seeds_that_no_other_has_used():
    study = small_study(seeds=2, first_seed=100)
    assert [run.seed for run in study.runs({})] == [100] * 4 + [101] * 4
    assert {run.seed for run in study.runs({}, 3)} == {100, 101, 102}
    assert "2 seeds from 100 on" in declaration(study)
    with pytest.raises(PserError, match="seeds from 0 on"):
        small_study(first_seed=-1)


def test_the_best_other_arm_is_chosen_by_the_studys_own_seeds():
    study = three_arms(first_seed=7)
    levels = {"main": [0] * 7 + [9, 9], "first": [9] * 7 + [1, 2], "second": [0] * 7 + [3, 4]}
    assert study.best_other(records(study, levels)) is study.arms[2]


def test_arms_and_games_may_have_more_seeds():
    arms = (
        Arm(name="a", about="", settings={"replay": "per"}, seeds=3),
        Arm(name="b", about="", settings={"replay": "uniform"}),
    )
    games = (Game(env="gym:CartPole-v1"), Game(env="gym:Acrobot-v1", seeds=4))
    runs = small_study(seeds=2, arms=arms, games=games, contrasts=()).runs({})
    counts = {
        (env, arm): sum(run.game.env == env and run.arm.name == arm for run in runs)
        for env in ("gym:CartPole-v1", "gym:Acrobot-v1")
        for arm in ("a", "b")
    }
    assert list(counts.values()) == [3, 2, 4, 4]


def three_arms(**changes):
    arms = (
        Arm(name="main", about="", settings={"replay": "pser"}, seeds=4),
        Arm(name="first", about="", settings={"replay": "per"}),
        Arm(name="second", about="", settings={"replay": "uniform"}),
    )
    return small_study(seeds=2, arms=arms, contrasts=(), best_other_seeds=4, **changes)


def seeds_of(runs, arm):
    return {run.game.env: sum(r.arm.name == arm and r.game == run.game for r in runs) for run in runs}


def test_the_best_other_arm_gets_more_seeds_once_all_have_theirs():
    study = three_arms()
    levels = {"main": [9, 9], "first": [1, 2], "second": [3, 4]}
    found = records(study, levels)
    assert study.best_other(found) is study.arms[2]
    assert set(seeds_of(study.runs(found), "second").values()) == {4}
    assert set(seeds_of(study.runs(found), "first").values()) == {2}
    found.popitem()  # one run of the second arm is missing
    assert study.best_other(found) is None
    assert set(seeds_of(study.runs(found), "second").values()) == {2}


def test_seeds_that_were_added_do_not_choose_another_arm():
    study = three_arms()
    found = records(study, {"main": [9] * 4, "first": [1, 2], "second": [3, 4, -50, -50]})
    assert study.best_other(found) is study.arms[2]


def test_named_seeds_choose_no_arm():
    study = three_arms()
    found = records(study, {"main": [9, 9], "first": [1, 2], "second": [3, 4]})
    assert len(study.runs(found, seeds=2)) == 12


def test_more_seeds_top_every_arm_up():
    assert len(small_study(seeds=2).runs({}, seeds=5)) == 20


def test_the_arms_settings_win_over_the_games_and_these_over_the_studys():
    study = small_study(
        settings={"budget_frames": 10, "capacity": 100, "alpha": 0.1},
        games=(Game(env="gym:CartPole-v1", settings={"budget_frames": 20, "alpha": 0.2}),),
        arms=(Arm(name="x", about="", settings={"replay": "per", "alpha": 0.3}),),
        contrasts=(),
    )
    (run,) = study.runs({}, seeds=1)
    settings = study.settings_of(run)
    assert (settings.run.budget_frames, settings.replay.capacity) == (20, 100)
    assert settings.replay.prioritization.alpha == 0.3


@pytest.mark.parametrize("name", NAMES)
def test_every_run_of_every_declared_study_has_valid_settings(name):
    study = find_study(name)
    runs = study.runs({})
    assert len({run.path for run in runs}) == len(runs)
    for run in runs:
        study.settings_of(run)


@pytest.mark.parametrize("name", NAMES)
def test_a_declaration_names_all_that_decides(name):
    study = find_study(name)
    text = declaration(study)
    wanted = [study.question, study.measure.about, study.stopping]
    wanted += [arm.about for arm in study.arms] + [game.env for game in study.games]
    wanted += [contrast.asks for contrast in study.contrasts]
    assert not [words for words in wanted if words not in text]


@pytest.mark.parametrize("name", NAMES)
def test_every_arm_of_a_figure_looks_different(name):
    arms = find_study(name).arms[:28]
    found = [looks(arms)[arm.name] for arm in arms]
    assert len(set(found)) == len(found)


def test_two_arms_of_one_name_are_refused():
    arm = Arm(name="a", about="", settings={})
    with pytest.raises(PserError, match="names of their own"):
        small_study(arms=(arm, arm), contrasts=())


def test_a_contrast_with_an_unknown_arm_is_refused():
    with pytest.raises(PserError, match="'nobody'"):
        small_study(contrasts=(Contrast(arm="nobody", against="pser", asks="?"),))


def test_a_part_of_a_study_keeps_the_contrasts_it_can_answer():
    study = small_study()
    assert study.only(games=["gym:CartPole-v1"]).contrasts == study.contrasts
    assert study.only(arms=["pser"]).contrasts == ()
    with pytest.raises(PserError, match="no arm 'nobody'"):
        study.only(arms=["nobody"])


def test_a_file_of_ones_own_declares_a_study(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from tests.studies.synthetic import records, small_study\nSTUDY = small_study(name='mine')\n"
    )
    assert find_study(str(path)).name == "mine"
    path.write_text("STUDY = 1\n")
    with pytest.raises(PserError, match="must declare STUDY"):
        find_study(str(path))
    path.write_text("STUDY = small_study(\n")
    with pytest.raises(PserError, match="is not Python, line 1: "):
        find_study(str(path))
    with pytest.raises(PserError, match="no file"):
        find_study(str(tmp_path / "other.py"))
    with pytest.raises(PserError, match="no study 'other'"):
        find_study("other")


@pytest.mark.parametrize(("setting", "told"), [("'eta': 1.5", "eta"), ("'wndow': 3", "wndow")])
def test_a_study_with_a_bad_setting_in_any_arm_is_refused_by_its_name(tmp_path, setting, told):
    path = tmp_path / "mine.py"
    path.write_text(
        "from tests.studies.synthetic import Arm, small_study\n"
        f"bad = Arm(name='bad', about='?', settings={{'replay': 'pser', {setting}}})\n"
        "study = small_study(name='mine')\n"
        "STUDY = small_study(name='mine', arms=(*study.arms, bad))\n"
    )
    with pytest.raises(PserError, match=f"'bad' on gym:CartPole-v1 of the study 'mine': .*{told}"):
        find_study(str(path))


def test_the_rainbow_that_is_studied_is_the_presets():
    study = find_study("rainbow")
    arm = next(arm for arm in study.arms if arm.name == "rainbow-pser")
    studied = study.settings_of(Planned(study.games[0], arm, 0))
    preset = preset_settings("rainbow-minatar", "minatar:breakout")
    assert (studied.agent, studied.optimizer) == (preset.agent, preset.optimizer)
    assert (studied.replay, studied.exploration) == (preset.replay, preset.exploration)


def test_each_ablation_lacks_one_part_of_rainbow():
    study = find_study("rainbow-parts")
    of = {arm.name: parts_of(study.settings_of(Planned(study.games[0], arm, 0))) for arm in study.arms}
    assert of.pop("rainbow") == frozenset(PARTS)
    assert of == {f"no-{part}": frozenset(PARTS) - {part} for part in PARTS}


def test_games_without_runs_have_no_panel():
    study = small_study()
    made = records(study, {"pser": [5], "uniform": [1]})
    first = study.games[0].env
    only = {path: one for path, one in made.items() if one.env == first}
    assert [game.env for game in shown_games(results_of(study, only))] == [first]
    assert shown_games(results_of(study, {})) == list(study.games)


def test_a_study_says_how_its_games_are_played():
    arms = (
        Arm(
            name="a",
            about="a",
            settings={"batch_size": 8, "update_period_steps": 4, "beta": 0.3, "beta_end": 0.3},
        ),
        Arm(name="b", about="b", settings={"batch_size": 8, "update_period_steps": 1}),
    )
    assert played(small_study(arms=arms, contrasts=())) == (
        "environments 4, batch 8, steps an update 4 or 1, replays of a transition 2 or 8, capacity 100, "
        "β 0.3 or 0.4 → 1"
    )
