"""Whole studies cry wolf as often as they say: simulated as they are declared, with arms that do not differ."""

from collections import defaultdict
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from tests.scores import DISTRIBUTIONS

from pser.analysis.statistics.comparisons import SHOWN
from pser.studies import pooled, results
from pser.studies.catalogue import find_study
from pser.studies.results import results_of

from .synthetic import record

SIMULATIONS = 120
ALLOWED = SHOWN + 3 * np.sqrt(SHOWN * (1 - SHOWN) / SIMULATIONS)


@pytest.fixture
def quick(monkeypatch):
    """Tests with few shuffles, others each time; hardly an interval, and no word on settings."""
    monkeypatch.setattr(results, "PERMUTATIONS", 300)
    monkeypatch.setattr(results, "RESAMPLES", 2)
    monkeypatch.setattr(results, "notes_of", lambda *_: [])
    seeds = count()

    def other_shuffles():
        seed = next(seeds)
        monkeypatch.setattr(results, "SEED", seed)
        monkeypatch.setattr(pooled, "SEED", seed)

    return other_shuffles


def blank(study):
    """A record of every run that the study may come to."""
    arms = tuple(
        replace(arm, seeds=max(arm.seeds or 0, study.best_other_seeds or 0, study.seeds))
        for arm in study.arms
    )
    whole = replace(study, arms=arms, best_other_seeds=None)
    return dict(record(study, run.game, run.arm, run.seed, 0.0) for run in whole.runs({}))


def played(study, blanks, rng):
    """Records of all runs of the study, with those it adds for its best arm; a game plays alike for all arms."""
    draws = {game.env: DISTRIBUTIONS[rng.integers(len(DISTRIBUTIONS))] for game in study.games}
    records = {}
    while missing := [run for run in study.runs(records) if run.path not in records]:
        for run in missing:
            one = blanks[run.path]
            level = float(draws[run.game.env](rng, 1)[0])
            records[run.path] = replace(one, train={**one.train, "return_mean": [level] * 6})
    return records


@pytest.mark.parametrize(
    "names", [("chain", "minatar"), ("insertion",), ("rainbow",), ("confirm",)], ids=" and ".join
)
def test_whole_studies_and_what_they_answer_together_alarm_at_most_one_time_in_twenty(names, quick):
    studies = {name: find_study(name) for name in names}
    blanks = {name: blank(study) for name, study in studies.items()}
    rng = np.random.default_rng(7)
    alarms = defaultdict(list)
    for _ in range(SIMULATIONS):
        quick()
        found = {name: results_of(study, played(study, blanks[name], rng)) for name, study in studies.items()}
        assert all(one.whole for one in found.values())
        for name, one in found.items():
            alarms[name].append(any(tested.shown for tested in one.tested))
        alarms["together"].append(any(tested.shown for tested in pooled.pooled(found)))
    rates = {family: np.mean(told) for family, told in alarms.items()}
    assert max(rates.values()) <= ALLOWED, rates
