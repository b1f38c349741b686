import json

import numpy as np
import pytest

from analysis.synthetic import Synthetic, write_run
from pser.analysis.colours import PALETTE
from pser.analysis.report.build import ReportSettings, build_report
from pser.analysis.report.labels import DASHES, agent_in, split_label, styles
from pser.analysis.report.tables import agent_table, score_table

AGENTS = ("DQN", "DQN+C51", "Rainbow")
STRATEGIES = {"PSER_MaxPrio_MAX": "pser", "PER_MaxPrio": "per", "Uniform": "uniform"}


def parts(*labels):
    return [split_label(label, {agent_in(label)}, "pser") for label in labels]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("agents")
    for agent_number, agent in enumerate(AGENTS):
        for strategy, replay in STRATEGIES.items():
            for seed in range(4):
                label = strategy if agent == "DQN" else f"{agent}_{strategy}"
                level = 10 + 3 * agent_number + {"pser": 2, "per": 1, "uniform": 0}[replay]
                run = Synthetic(replay=replay, label=label, seed=seed, level=level, noise=0.2)
                write_run(root / agent / strategy / f"seed-{seed}", run)
    return build_report([root], ReportSettings(resamples=200))


@pytest.mark.parametrize(
    ("label", "agent"),
    [
        ("PSER_MaxPrio_MAX", ""),
        ("Uniform", ""),
        ("Rainbow_PSER_MaxPrio_MAX", "Rainbow"),
        ("DQN+C51_PER_MaxPrio", "DQN+C51"),
        ("rainbow-no-noisy_Uniform", "rainbow-no-noisy"),
        ("PER_MaxPrio [alpha=0.5]", ""),
        ("Mine", ""),
    ],
)
def test_agent_is_what_a_label_says_before_its_replay(label, agent):
    assert agent_in(label) == agent


def test_manifest_names_the_agent_where_it_does(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(label="Own_Thing", replay="pser"))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"agent": "Own"}))
    (part,) = build_report([tmp_path], ReportSettings(resamples=100)).runs.parts
    assert (part.agent, part.strategy) == ("Own", "Thing")


def test_agent_that_goes_without_saying_may_differ_from_game_to_game():
    assert split_label("PER_MaxPrio", {"DQN"}, "per").agent == "DQN"
    assert split_label("PER_MaxPrio", {"", "DQN+Double"}, "per").agent == "DQN+Double"
    assert split_label("PER_MaxPrio", {"DQN", "DQN+Double"}, "per").agent == "usual agent"
    assert split_label("PER_MaxPrio", {""}, "per").agent == "DQN"
    assert split_label("PER_MaxPrio", {"DQN", "DQN+Double"}, "per").strategy == "PER_MaxPrio"


def test_labels_without_an_agent_share_one_and_are_compared(tmp_path):
    """Some runs record the usual agent, older ones do not."""
    for replay, agent in (("pser", "DQN+Double"), ("per", None)):
        for seed in (0, 1):
            folder = write_run(tmp_path / replay / str(seed), Synthetic(replay=replay, seed=seed))
            manifest = json.loads((folder / "manifest.json").read_text())
            (folder / "manifest.json").write_text(json.dumps(manifest | ({"agent": agent} if agent else {})))
    report = build_report([tmp_path], ReportSettings(resamples=100))
    assert {part.agent for part in report.runs.parts} == {"DQN+Double"}
    assert len(report.comparison.pairs) == 1


def test_colour_tells_replays_apart_and_dashes_agents():
    looks = styles(
        parts("PSER_MaxPrio_MAX", "PER_MaxPrio", "Rainbow_PSER_MaxPrio_MAX", "Rainbow_PER_MaxPrio")
    )
    assert looks["PSER_MaxPrio_MAX"].colour == looks["Rainbow_PSER_MaxPrio_MAX"].colour == PALETTE[0]
    assert looks["PER_MaxPrio"].colour == looks["Rainbow_PER_MaxPrio"].colour == PALETTE[1]
    assert looks["PSER_MaxPrio_MAX"].dash == ()
    assert looks["Rainbow_PSER_MaxPrio_MAX"].dash == looks["Rainbow_PER_MaxPrio"].dash == DASHES[1]


def test_agents_with_one_replay_have_a_colour_each():
    looks = styles(parts(*(f"agent{number}_Uniform" for number in range(8))))
    assert len({look.colour for look in looks.values()}) == 8
    assert {look.dash for look in looks.values()} == {()}


def test_no_two_of_many_variants_look_alike():
    labels = [f"PSER_MaxPrio_MAX [rho=0.{number}]" for number in range(1, 10)]
    looks = styles(parts("PSER_MaxPrio_MAX", "PER_MaxPrio", "Uniform", *labels))
    assert len(set(looks.values())) == 12


def test_labels_are_ordered_by_agent_then_replay(report):
    assert [part.agent for part in report.runs.parts] == ["DQN"] * 3 + ["DQN+C51"] * 3 + ["Rainbow"] * 3
    assert [part.replay for part in report.runs.parts] == ["pser", "per", "uniform"] * 3
    assert len(report.runs.main_labels) == 9


def test_pairs_share_the_agent_or_the_replay(report):
    """Within each of 3 agents 3 pairs of replays, and for each of 3 replays 3 pairs of agents."""
    split = {part.name: part for part in report.runs.parts}
    assert len(report.comparison.pairs) == 18
    for pair in report.comparison.pairs:
        x, y = split[pair.x], split[pair.y]
        assert (x.agent == y.agent) != (x.strategy == y.strategy)


def test_scores_are_tabled_by_agent_and_replay(report):
    table = agent_table(report)
    assert [column.name for column in table.columns] == ["game", "agent", *STRATEGIES]
    assert [row[1].text for row in table.rows] == list(AGENTS)
    board = report.board.boards[0]
    expected = np.mean(board.values("Rainbow_PER_MaxPrio", "final"))
    assert table.rows[2][3].sort == pytest.approx(expected)
    assert [column.name for column in score_table(report).columns][:3] == ["game", "agent", "replay"]


def test_single_agent_needs_no_table_of_agents(tmp_path):
    for replay in ("pser", "per"):
        write_run(tmp_path / replay, Synthetic(replay=replay))
    report = build_report([tmp_path], ReportSettings(resamples=100))
    assert agent_table(report) is None
    assert "agent" not in [column.name for column in score_table(report).columns]
